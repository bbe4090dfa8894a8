//go:build linux

package sampler

import (
	"context"

	"goprof/sampler/ptrace"
)

// Engine is a way to take samples: who is due and how a thread is looked at differ, what comes of it does not.
// Sampler, which stops the threads that use CPU time, is one.
type Engine interface {
	// Run samples until ctx is done or the process ends, hands snapshots over in q, and closes it. It is called once.
	Run(ctx context.Context, cfg Config, q *Queue) (Stats, error)
	// Advise tells what is known of a thread, from any goroutine; false: too many are waiting, try again later.
	Advise(tid int, hint ptrace.Hint) bool
	// Stats is what happened so far, from any goroutine, once Run has been called.
	Stats() Stats
}
