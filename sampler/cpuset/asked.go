//go:build linux

package cpuset

import (
	"time"

	"golang.org/x/sys/unix"

	"goprof/sampler"
	"goprof/sampler/ptrace"
)

// Every is how often the engines ask which CPUs there are.
const Every = int64(1e9)

// unseenFor is how long no one may ask which CPUs there are before any of them may have been off and on meanwhile.
const unseenFor = 10 * Every

// Asked is when an engine asked last which CPUs there are.
type Asked struct {
	At    int64
	Slept int64 // for how long the machine was suspended, as of then
}

// AskedNow is for an engine that asks at this moment.
func AskedNow() Asked { return Asked{ptrace.Monotonic(), suspended()} }

// IsDue reports whether it is time to ask again.
func (a *Asked) IsDue(now int64) bool { return sampler.IsAbout(now-a.At, Every) }

// MissedMuch is called where an engine asks again. It reports whether any CPU may have been off and on since the last
// time: the last question was long ago, or the machine was suspended. A machine that is suspended to memory or to disk
// switches all CPUs but one off (kernel/cpu.c, freeze_secondary_cpus). A CPU that is switched off loses its perf events
// for good (kernel/events/core.c, perf_event_exit_cpu).
func (a *Asked) MissedMuch(now int64) bool {
	slept := suspended()
	missed := now-a.At > unseenFor || slept-a.Slept > int64(10*time.Millisecond)
	*a = Asked{now, slept}
	return missed
}

// suspended is for how long the machine was suspended since it was started: CLOCK_MONOTONIC stands still then.
func suspended() int64 {
	var boot, awake unix.Timespec
	unix.ClockGettime(unix.CLOCK_BOOTTIME, &boot)
	unix.ClockGettime(unix.CLOCK_MONOTONIC, &awake)
	return boot.Nano() - awake.Nano()
}
