//go:build linux

package session

import (
	"goprof/profile"
	"goprof/sampler"
	"goprof/sampler/ptrace"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// account brings the profile's account up to date and sums it up.
func (r *recording) account() profile.Summary {
	stats := r.sampler.Stats()
	if r.opt.Mode.IsWall() {
		r.settleAll() // under the names that its places have
	}
	for outcome, n := range stats.Lost {
		r.profile.Lose(reasonOf(ptrace.Outcome(outcome)), n-r.lost[outcome])
	}
	r.lost = stats.Lost
	r.profile.Meta.Duration = stats.Wall
	times, looks := profile.Times{}, (*profile.Looks)(nil)
	switch {
	case r.opt.Event != nil: // which is no time
	case r.opt.Mode.IsWall():
		r.settleAll()
		looks = r.looks(&stats)
	default:
		times = r.times(&stats)
	}
	sum := r.profile.Summary()
	sum.RateReached = stats.Rate()
	if r.opt.Event != nil {
		sum.Events, sum.RateReached = r.opt.Event.counts(stats.Events), 0
		sum.Contents = r.contents()
		r.shares.correct(sum.Events)
	} else if stats.Interval > r.opt.Interval {
		sum.RateLowered = float64(time.Second) / float64(stats.Interval)
	}
	sum.MadeUp, sum.Effective = stats.MadeUp+r.madeUp, r.effective(sum.Samples)
	sum.Threads = len(r.sampled)
	sum.Waiting = stats.Waiting
	sum.Skipped, sum.Gap = stats.Skipped, stats.Gap
	sum.Times, sum.Looks = times, looks
	if r.opt.Mode == TTSPMode {
		sum.Safepoints = r.safepoints.account(&stats.Gathered)
	}
	sum.Allocated = r.allocated.account()
	if r.opt.Mode == WaitingMode && r.opt.Engine == PerfEngine {
		o := &stats.OffCPU
		sum.Switches = &profile.Switches{Waits: o.Waits, Short: o.Short, ShortFor: o.ShortFor,
			Thinned: o.Thinned, Limit: o.Limit, Dropped: o.Dropped}
	}
	sum.Pauses, sum.Hindered = pausesOf(&stats), r.hindered(&stats.Holds)
	sum.Silent, sum.Notes = len(stats.Silent), r.silentNotes(&stats)
	sum.Notes = append(append(sum.Notes, r.kernelNotes(&stats)...), r.contexts.notes()...)
	sum.Notes = append(sum.Notes, r.engineNotes(&stats)...)
	sum.Links = r.contexts.account()
	sum.OwnCPU = ownCPU() - r.before
	if !stats.Visits { // who is visited was on a CPU
		sum.Asleep = r.asleep
	}
	sum.ShortSleeps = r.sleeps
	sum.Leans = r.opt.Engine != PerfEngine && !r.opt.Mode.IsWall() && !stats.Visits && runtime.NumCPU() > 1
	if sum.Leans {
		sum.LeansWhy, sum.LeansCure = withoutPriority()
	}
	if sum.Lost > 0 || times.Unwatched > 0 {
		sum.LateWhy, sum.LateCure = lacksPriority()
	}
	sum.Chosen = r.opt.Wants != nil
	sum.SetQuality()
	return sum
}

// times says where the CPU time of the process went. The time of snapshots that gave no stack, or that have not been
// walked yet, does not count as sampled.
func (r *recording) times(stats *sampler.Stats) profile.Times {
	t := profile.Times{Process: stats.Times.Process - r.unwanted, Sampled: r.profile.Time, Exited: stats.Times.Exited,
		Unwatched: stats.Times.Unwatched, Small: stats.Times.Small}
	t.NotSampled = max(t.Process-t.Sampled-t.Exited, 0)
	t.Process = t.Sampled + t.NotSampled + t.Exited
	r.profile.SetTime(profile.NotSampled, t.NotSampled)
	r.profile.SetTime(profile.ExitedThreads, t.Exited)
	return t
}

func pausesOf(st *sampler.Stats) profile.Pauses {
	h := &st.Pauses
	return profile.Pauses{Count: h.Count(), P50: h.Quantile(0.50), P99: h.Quantile(0.99), Max: h.Max(),
		Total: h.Sum(), Bound: ptrace.StandsAtMost}
}

// ownCPU is the CPU time that goprof has used so far.
func ownCPU() time.Duration {
	var ts unix.Timespec
	if unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &ts) != nil {
		return 0
	}
	return time.Duration(ts.Nano())
}
