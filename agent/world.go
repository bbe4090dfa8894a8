//go:build linux

package agent

import (
	"context"
	"time"

	"goprof/diagnose"
	"goprof/profile"
	"goprof/profile/resource"
	"goprof/sampler"
	"goprof/session"
)

// World is what an agent watches.
type World interface {
	// PIDs, Brief and Glance are diagnose.Host's. PIDs is nil if the list cannot be read.
	PIDs() []int
	Brief(pid int) (diagnose.Brief, bool)
	Glance(pid int, closely bool) (diagnose.JVM, bool)
	// Place fills in where the JVM runs. It costs more than Glance, so only JVMs are placed.
	Place(j *Candidate)
	// CPU is the CPU time that the process has used so far, 0 if there is no such process.
	CPU(pid int) time.Duration
	// Attach opens a JVM. Nothing is done to it.
	Attach(pid int) (Target, error)
	// Explain says why Attach or Record failed.
	Explain(pid int, err error) diagnose.Cause
	// Own is the CPU time that goprof itself has used so far, and CPUs how many the host has.
	Own() time.Duration
	CPUs() int
	// Memory is what goprof had in use after its last garbage collection, and how many there have been.
	Memory() (live int64, collections uint64)
	// LetGrow sets by how many bytes the heap may grow beyond what is live before garbage is collected.
	LetGrow(live, growth int64)
	// SetInterval sets the CPU time between two samples from now on, for JVMs that are sampled together.
	SetInterval(time.Duration)
}

// Target is a JVM that is attached to.
type Target interface {
	// Tell fills in what only the JVM itself says.
	Tell(*Candidate)
	// Resource is whose the batches are.
	Resource() resource.Attributes
	// Record samples the JVM until ctx is done or the JVM ends.
	Record(ctx context.Context, how Recording) (profile.Summary, error)
	// Alive reports whether the process is there, and still the same program.
	Alive() bool
	Close()
}

// Recording is how one JVM is recorded.
type Recording struct {
	Settings *Settings
	Interval time.Duration
	Sink     session.Sink
	// Started is called when the recording has begun, with what governs it.
	Started func(Control)
	Beside  []Beside // events that are recorded as well
}

// Control governs a recording that is under way, from any goroutine.
type Control interface {
	// Govern sets the CPU time between two samples, of which only a share is taken; 0 is as few as can be. Govern
	// returns false if the rate cannot change.
	Govern(interval time.Duration, share float64) bool
	// Latest is what was done up to about a second ago. It returns at once.
	Latest() sampler.Stats
}
