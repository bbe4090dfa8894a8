//go:build linux

package agent

import (
	"context"
	"time"

	"goprof/diagnose"
	"goprof/process/maybe"
	"goprof/profile"
	"goprof/profile/resource"
	"goprof/sampler"
	"goprof/session"
)

// World is the host that an agent watches.
type World interface {
	// PIDs, Brief and Glance are diagnose.Host's. PIDs is nil if the list cannot be read.
	PIDs() []int
	Brief(pid int) (diagnose.Brief, bool)
	Glance(pid int, closely bool) (jvm diagnose.JVM, is maybe.Value[bool])
	// Place finds out where the JVM runs. It costs more than Glance, so it is called only for JVMs.
	Place(j *Candidate)
	// CPU returns the CPU time that the process has used so far, or 0 if there is no such process.
	CPU(pid int) time.Duration
	// Attach opens a JVM. It does not change the JVM.
	Attach(pid int) (Target, error)
	// Explain returns why Attach or Record failed.
	Explain(pid int, err error) diagnose.Cause
	// Own returns the CPU time that goprof itself has used. CPUs returns the number of the host's CPUs.
	Own() time.Duration
	CPUs() int
	// Memory returns the memory of goprof in use after its last garbage collection, and the number of collections.
	Memory() (live int64, collections uint64)
	// LetGrow sets how many bytes the heap may grow beyond live before garbage is collected.
	LetGrow(live, growth int64)
	// SetInterval sets the CPU time between two samples of JVMs that are sampled together.
	SetInterval(time.Duration)
}

// Target is an attached JVM.
type Target interface {
	// Tell adds the facts that only an attached JVM has.
	Tell(*Candidate)
	// Resource returns the attributes of the JVM's batches.
	Resource() resource.Attributes
	// Record samples the JVM until ctx is done or the JVM ends.
	Record(ctx context.Context, how Recording) (profile.Summary, error)
	// Alive reports whether the process is there, and still the same program.
	Alive() bool
	Close()
}

// Recording says how one JVM is recorded.
type Recording struct {
	Settings *Settings
	Interval time.Duration
	Sink     session.Sink
	// Started is called when the recording has begun. The Control governs it.
	Started func(Control)
	Beside  []Beside // events that are recorded, too
}

// Control changes a running recording. Any goroutine may use it.
type Control interface {
	// Govern sets the CPU time between two samples, and the share of these samples that is taken. A share of 0 takes as
	// few as possible. Govern returns false if the rate cannot change.
	Govern(interval time.Duration, share float64) bool
	// Latest returns the counters up to about a second ago. It does not block.
	Latest() sampler.Stats
}
