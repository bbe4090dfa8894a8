//go:build linux

package sampler

import (
	"context"

	"goprof/arch"
	"goprof/sampler/ptrace"
)

// Engine is a way to take samples. Engines differ in which thread is due and in how they look at a thread. All that
// follows is the same for each engine.
type Engine interface {
	// Run samples until ctx is done or the process ends, hands snapshots over in q, and closes it. It is called once.
	Run(ctx context.Context, cfg Config, q *Queue) (Stats, error)
	// Advise says what is known of a thread, from any goroutine; false: too many are waiting, try again later.
	Advise(tid int, hint ptrace.Hint) bool
	// Stats is what happened so far, from any goroutine, once Run has been called.
	Stats() Stats
	// Abilities is what the engine's looks are like.
	Abilities() Abilities
}

// Base is what all engines have.
type Base struct {
	Progress
	Hints
	PID int
	CPU *arch.CPU
}

// NewBase is the Base of an engine of process pid. wake is that of NewProgress.
func NewBase(pid int, cpu *arch.CPU, wake func()) Base {
	return Base{Progress: NewProgress(wake), PID: pid, CPU: cpu}
}

// Abilities is Engine's, of an engine that stops threads.
func (b *Base) Abilities() Abilities { return Abilities{} }

// Abilities is what sets the looks of engines apart.
type Abilities struct {
	ReadsLate bool // threads run on while what is not in the look itself is read
	Bursts    bool // many looks may come at once, and each is to be counted
	Switches  bool // looks are of whole waits, by the kernel's records of switches
}
