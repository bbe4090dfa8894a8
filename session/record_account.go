//go:build linux

package session

import (
	"errors"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"goprof/process"
	"goprof/profile"
	"goprof/sampler"
	"goprof/sampler/perf"
	"goprof/sampler/ptrace"
)

// account updates the profile's account and sums it up.
func (r *recording) account() profile.Summary {
	stats := r.sampler.Stats()
	r.manner.settleAll() // before names change
	for outcome, n := range stats.Lost {
		r.profile.Lose(reasonOf(ptrace.Outcome(outcome)), n-r.lost[outcome])
	}
	r.lost = stats.Lost
	r.profile.Meta.Duration = stats.Wall
	sum := r.profile.Summary()
	sum.RateReached = stats.Rate()
	sum.MadeUp = stats.MadeUp
	sum.Threads = len(r.sampled)
	sum.Waiting = stats.Waiting
	sum.Skipped, sum.Gap = stats.Skipped, stats.Gap
	sum.Allocated = r.allocated.account()
	h := &stats.Pauses
	sum.Pauses = profile.Pauses{Count: h.Count(), P50: h.Quantile(0.50), P99: h.Quantile(0.99), Max: h.Max(),
		Total: h.Sum(), Bound: ptrace.StandsAtMost}
	sum.Hindered = hindered(&stats.Holds)
	sum.Silent, sum.Notes = len(stats.Silent), r.silentNotes(&stats)
	sum.Notes = append(append(sum.Notes, r.kernel.notes()...), r.contextNotes(stats.NoSpans)...)
	// When a process is killed, its memory is gone before its last thread.
	sum.Notes = append(sum.Notes, r.group.endNotes(stats.Ended || errors.Is(r.Process.Alive(), process.ErrGone))...)
	sum.Links = r.contexts.account()
	sum.OwnCPU = ownCPU() - r.before
	sum.Chosen = r.opt.Wants != nil
	sum.NoPerf = sum.Meta.Engine != profile.EnginePerf && noPerf()
	r.manner.account(&sum, &stats)
	if sum.Lost > 0 || sum.Times.Unwatched > 0 {
		sum.LateWhy, sum.LateCure = lacksPriority()
	}
	sum.SetQuality()
	return sum
}

// noPerf reports whether perf cannot take samples of CPU time with the rights that goprof has kept.
var noPerf = sync.OnceValue(func() bool { return perf.TryWide(0) != nil })

// rateLowered returns the rate to which a recording has slowed down. It is 0 if the rate is the requested one.
func (r *recording) rateLowered(stats *sampler.Stats) float64 {
	if stats.Interval > r.opt.Interval {
		return float64(time.Second) / float64(stats.Interval)
	}
	return 0
}

// ownCPU returns the CPU time that goprof has used so far.
func ownCPU() time.Duration {
	var ts unix.Timespec
	if unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &ts) != nil {
		return 0
	}
	return time.Duration(ts.Nano())
}
