//go:build linux

package sampler

import (
	"time"

	"golang.org/x/sys/unix"

	"goprof/sampler/ptrace"
)

// followEvery is how often the engines ask which CPUs there are.
const followEvery = int64(1e9)

// unseenFor is how long nobody may ask which CPUs there are before any of them may have been off and on meanwhile.
const unseenFor = 10 * followEvery

// cpusAsked is when an engine asked last which CPUs there are.
type cpusAsked struct {
	at    int64
	slept int64 // for how long the machine was suspended, as of then
}

func askedNow() cpusAsked { return cpusAsked{ptrace.Monotonic(), suspended()} }

// isDue reports whether it is time to ask again.
func (a *cpusAsked) isDue(now int64) bool { return isAbout(now-a.at, followEvery) }

// missedMuch is called where an engine asks again. It reports whether any CPU may have been off and on since the last
// time: nobody asked for long, or the machine was suspended. A machine that is suspended to memory or to disk switches
// all CPUs but one off (kernel/cpu.c, freeze_secondary_cpus). A CPU that is switched off loses its perf events for good
// (kernel/events/core.c, perf_event_exit_cpu).
func (a *cpusAsked) missedMuch(now int64) bool {
	slept := suspended()
	missed := now-a.at > unseenFor || slept-a.slept > int64(10*time.Millisecond)
	*a = cpusAsked{now, slept}
	return missed
}

// suspended is for how long the machine was suspended since it was started: CLOCK_MONOTONIC stands still then.
func suspended() int64 {
	var boot, awake unix.Timespec
	unix.ClockGettime(unix.CLOCK_BOOTTIME, &boot)
	unix.ClockGettime(unix.CLOCK_MONOTONIC, &awake)
	return boot.Nano() - awake.Nano()
}
