//go:build linux

package session

import (
	"runtime"
	"time"

	"goprof/profile"
	"goprof/sampler"
	"goprof/sampler/look"
	"goprof/sampler/perf"
	"goprof/sampler/threads"
)

// cpuTime is a recording of CPU time. Each look is a sample, and carries the CPU time of its thread since the last one.
type cpuTime struct {
	*recording
	unwanted time.Duration // CPU time of threads that were sampled before they were known to be unwanted
	owed     map[int]owed  // CPU time of threads whose samples were stale
	madeUp   int64         // how much of owed was made up for
	squares  float64       // sum of the squares of what samples count

	asleep int64 // samples of threads that slept when they were stopped
	// sleeps counts samples of threads that sleep for a moment, where such sleeps are seen too seldom.
	sleeps     int64
	dearSleeps bool
}

func (s *Session) newCPUTime(r *recording) *cpuTime {
	return &cpuTime{recording: r, dearSleeps: perf.SetsClockDearly(s.Process.CPU())}
}

func (c *cpuTime) together() int              { return mostTogether }
func (c *cpuTime) seen(snap *look.Look) int64 { return snap.When }

func (c *cpuTime) wanted(snap *look.Look) bool {
	wanted := c.follow(snap)
	if !wanted {
		c.unwanted += time.Duration(snap.CPU)
	}
	return wanted
}

func (c *cpuTime) lose(snap *look.Look, why profile.Reason) {
	c.profile.Lose(why, snap.Samples())
	if why != profile.Stale {
		return
	}
	c.surveyed.wanted = c.habits.surveys
	c.owe(snap)
	if c.queue != nil {
		c.queue.Hurry(now())
	}
}

func (c *cpuTime) shape(snap *look.Look, stack *profile.Stack) bool {
	c.kernel.put(snap, stack)
	c.settleOwed(snap)
	c.countCut(stack.Truncated, snap.Samples())
	return true
}

func (c *cpuTime) count(snap *look.Look, stack *profile.Stack, root string) {
	cpu := c.Process.CPU()
	if !c.can.ReadsLate && threads.FellAsleep(cpu, &snap.Snapshot) {
		c.asleep++
	}
	if c.dearSleeps && perf.SleepsShortly(cpu, &snap.Snapshot, snap.When+int64(c.timeOffset)) {
		c.sleeps += snap.Samples()
	}
	c.add(root, stack, snap.Samples(), time.Duration(snap.CPU))
	c.tellSample(snap, stack, c.contexts.link(&snap.Context, snap.Samples()))
	c.sampled[snap.TID] = true
}

func (c *cpuTime) account(sum *profile.Summary, stats *sampler.Stats) {
	sum.Times = c.times(stats)
	sum.MadeUp, sum.Effective = stats.MadeUp+c.madeUp, c.effective(sum.Samples)
	sum.RateLowered = c.rateLowered(stats)
	if !stats.Visits { // a visit only meets threads that are on a CPU
		sum.Asleep = c.asleep
	}
	sum.ShortSleeps = c.sleeps
	if sum.Hindered != nil && !sum.NoPerf {
		sum.Hindered.Cure += ", or --engine perf, which stops no thread"
	}
	sum.Leans = !c.can.ReadsLate && !stats.Visits && runtime.NumCPU() > 1
	if sum.Leans {
		sum.LeansWhy, sum.LeansCure = withoutVisits(stats.NoVisits, withoutPriority)
	}
}

// times returns where the CPU time of the process went. The time of snapshots that have no stack, or are not walked
// yet, does not count as sampled.
func (c *cpuTime) times(stats *sampler.Stats) profile.Times {
	t := profile.Times{Process: stats.Times.Process - c.unwanted, Sampled: c.profile.Time, Exited: stats.Times.Exited,
		Unwatched: stats.Times.Unwatched, Small: stats.Times.Small}
	t.NotSampled = max(t.Process-t.Sampled-t.Exited, 0)
	t.Process = t.Sampled + t.NotSampled + t.Exited
	c.profile.SetTime(profile.NotSampled, t.NotSampled)
	c.profile.SetTime(profile.ExitedThreads, t.Exited)
	return t
}
