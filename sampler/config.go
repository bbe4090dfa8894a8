//go:build linux

package sampler

import (
	"errors"
	"sync/atomic"
	"time"

	"goprof/process"
	"goprof/sampler/look"
	"goprof/sampler/ptrace"
)

// Config says how to sample.
type Config struct {
	// Interval of CPU time between two samples of a thread, and the mean time between ticks.
	Interval time.Duration
	// NoJitter fires at exact multiples of Interval: for tests. Otherwise each tick falls anywhere within its interval,
	// so that no program runs in step with goprof.
	NoJitter bool
	// NoNotes asks the threads which of them was on a CPU, as is done where the kernel does not note it: for tests.
	NoNotes bool
	// Online returns the CPUs that threads can run on now; nil: the CPUs that the kernel names. For tests.
	Online func() []int
	// MaxStack bounds the copy of one stack; 0 is DefaultStackLimit.
	MaxStack int
	// MaxOverhead is the share of the threads' CPU time for which pauses may hold them up. If pauses cost more,
	// Interval grows. 0: there is no bound.
	MaxOverhead float64
	// Pace is the Interval in nanoseconds, and may change at any time; nil: nothing changes Interval. Engines that stop
	// threads look at it with each tick.
	Pace *atomic.Int64
	// Lean is for runs that go on for good, beside many others. Package events then has small rings, and looks into
	// them less often while nothing happens.
	Lean bool
	// MostSamples bounds the samples of an event in a second; 0 is a usual value.
	MostSamples float64
	// After is Tracer.After. It is called on the sampler's OS thread.
	After func(snap *look.Look, released int64)
	// Note is called with each sample that After is not called with, by engines that stop no thread. It may be nil.
	Note func(snap *look.Look)
	// KnownIn says where Note keeps which code is known; nil: in a place of its own. A checker looks there. It may be nil.
	KnownIn func(*process.KnownCode)
	// Memory is what After and wall.Options.During read; it may be nil.
	Memory *ptrace.Memory
	// Trail is Tracer.Trail, Contexts Tracer.Contexts.
	Trail    *process.Trail
	Contexts *ptrace.Contexts
}

// ReadSoon reads what is wanted as soon as a sample is there whose thread was not stopped.
func (c *Config) ReadSoon(snap *look.Look, prompt bool) {
	switch {
	case prompt && c.After != nil:
		c.After(snap, snap.When)
	case c.Note != nil:
		c.Note(snap)
	}
}

// MinInterval is the shortest that makes sense: looks take longer.
const MinInterval = 50 * time.Microsecond

// ErrInterval: Config.Interval is too short.
var ErrInterval = errors.New("sampler: interval is below 50 us")

// ErrNoProcess: there is no such process.
var ErrNoProcess = errors.New("sampler: no such process")

// NotPermittedError: the kernel does not let goprof trace the process. That may happen in the middle of a run too: the
// process may have changed its user, or become undumpable.
type NotPermittedError struct{ PID int }

func (e *NotPermittedError) Error() string {
	return "sampler: not permitted to trace the process"
}
