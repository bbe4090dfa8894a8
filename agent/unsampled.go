//go:build linux

package agent

import (
	"slices"
	"time"

	"goprof/profile"
)

// Samples carry the CPU time of their threads. Some time has no sample: of threads that ended before one, of looks
// that were lost. It goes into the batches as the stack "[not sampled]", so that their sum is what the process has
// used.
//
// A thread's time since its last sample is missing, too, and comes with its next one. So time counts as not sampled
// once it has been missing at each of the last few cuts. A sample that brings such time all the same makes the sum too
// large, until as much is missing again. Then nothing is added. The error does not grow.

// restCuts is how many cuts in a row miss time that is not sampled.
const restCuts = 4

// unsampled finds out how much of a process's CPU time has no sample.
type unsampled struct {
	sent    time.Duration // in samples, and as not sampled
	missing []time.Duration
}

// take is how much to add to a batch that is cut when the process has used so much since the recording began.
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

// begin leaves out what has been used so far: another agent counted until then.
func (r *unsampled) begin(used time.Duration) { *r = unsampled{sent: used} }

var notSampled = &profile.Stack{Frames: []profile.Frame{
	{Func: &profile.Func{Name: profile.NotSampled}, Kind: profile.Gap, BCI: -1}}}
