package stops

import (
	"time"

	"goprof/sampler/ptrace"
)

// thrift keeps pauses within a given share of the program's CPU time. A sample stands for one interval of CPU time and
// costs one pause. So the share is pause / interval, and the interval for a given share is pause / share.
//
// The interval never becomes shorter. Samples at two rates stand for different amounts of time, so the rate should
// change seldom and early.
type thrift struct {
	count int64 // of pauses, at the last decision
	sum   time.Duration
}

// thriftWindow is how many pauses are averaged before the interval may grow: one long pause on a busy machine says
// nothing.
const thriftWindow = 50

// interval returns the interval from now on.
func (t *thrift) interval(share float64, now time.Duration, pauses *ptrace.Histogram) time.Duration {
	n := pauses.Count() - t.count
	if share <= 0 || n < thriftWindow {
		return now
	}
	mean := (pauses.Sum() - t.sum) / time.Duration(n)
	t.count, t.sum = pauses.Count(), pauses.Sum()
	return max(now, min(time.Duration(float64(mean)/share), maxThrift))
}

// maxThrift is the longest interval that thrift makes.
const maxThrift = 10 * time.Second
