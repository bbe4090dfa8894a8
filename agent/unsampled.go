//go:build linux

package agent

import (
	"slices"
	"time"

	"goprof/profile"
)

// Samples carry the CPU time of their threads. Some CPU time has no sample: the time of threads that ended before their
// first sample, and the time of lost looks. The batches show it as the stack "[not sampled]", so their sum is the CPU
// time of the process.
//
// A thread's time since its last sample comes with its next sample. So time is added as not sampled only if it was
// missing in each of the last few batches. A later sample may still carry such time. Then the sum is too large, and
// nothing is added until as much time is missing again. So the error does not grow.

// restCuts is the number of cuts in a row that must miss time before the time counts as not sampled.
const restCuts = 4

// unsampled computes how much of a process's CPU time has no sample.
type unsampled struct {
	sent    time.Duration // CPU time in samples and as not sampled
	missing []time.Duration
}

// take returns the CPU time to add to a batch. used is the CPU time of the process since the recording began.
func (r *unsampled) take(used time.Duration, last bool) time.Duration {
	r.missing = append(r.missing, used-r.sent)
	if len(r.missing) > restCuts {
		r.missing = slices.Delete(r.missing, 0, 1)
	}
	due := max(slices.Min(r.missing), 0)
	switch {
	case last:
		due = max(used-r.sent, 0)
	case len(r.missing) < restCuts:
		due = 0
	}
	for i := range r.missing {
		r.missing[i] -= due
	}
	r.sent += due
	return due
}

// begin leaves out the CPU time used so far, because another agent counted it.
func (r *unsampled) begin(used time.Duration) { *r = unsampled{sent: used} }

var notSampled = &profile.Stack{Frames: []profile.Frame{
	{Func: &profile.Func{Name: profile.NotSampled}, Kind: profile.Gap, BCI: -1}}}
