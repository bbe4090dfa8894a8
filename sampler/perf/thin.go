//go:build linux

package perf

import (
	"time"

	"goprof/sampler/ptrace"
	"goprof/sampler/ring"
)

// Lowering the rate when goprof cannot keep up.
//
// On a busy machine, samples come faster than goprof can read and walk them. Then a ring or the queue is full until
// goprof has a CPU again. All samples of such a time would be lost, and the profile would not show what ran. Instead
// goprof lengthens the periods of all events by the same factor, until nearly no sample is lost. A sample then counts
// for as many as the factor says (look.Look.Count): shares stay, and so does the number of samples for each interval of
// CPU time. Chance moves shares more, as with fewer samples (profile.Summary.Effective).
//
// The walker may be short of CPU time even if the queue has room. Looks then become older and older, until they are too
// old. So a look that reaches the walker very late counts as lost here (Queue.Behind).
//
// Lost samples are made up for. If a thread has had fewer samples than its CPU time has intervals, its next samples
// count for the missing ones, too, until all lost ones are made up for.

const (
	factorMost = 64
	// judgeEvery is how often goprof judges whether samples are lost. judgeFewest is the least number of samples for a
	// judgment.
	judgeEvery, judgeFewest = perfLook, 16
	// The factor grows if more than one in fewLost samples was lost. It shrinks after calmFor without a loss.
	fewLost = 16
	calmFor = int64(4 * time.Second)
	// A sample makes up for at most 1/owedShare of the samples that its thread lacks, but for at least one.
	owedShare = 8
)

// pace is how many intervals an event's period lasts. Its samples count for as many.
type pace struct {
	factor, before int32 // 0 means 1
	since          int64 // when factor took effect
}

// set sets the factor. Call it right after the period was set.
func (p *pace) set(factor int32, now int64) {
	p.factor, p.before, p.since = factor, max(p.factor, 1), now
}

func (p *pace) at(when int64) int64 {
	if when < p.since {
		return int64(p.before)
	}
	return int64(max(p.factor, 1))
}

// paceKeeper decides on the factor.
type paceKeeper struct {
	factor      int32
	taken, lost int64 // samples since judgedAt; each counts once, whatever it stands for
	judgedAt    int64
	lostAt      int64 // when a sample was last lost, or the factor changed
	lacking     int64 // lost samples that were not made up for
}

// lose counts n lost samples. stood is how many they stood for.
func (t *paceKeeper) lose(n, stood int64) {
	t.lost += n
	t.lacking += stood
}

// judge doubles the factor if too many samples were lost, and halves it after a time without losses. It reports whether
// it has changed the factor.
func (t *paceKeeper) judge(now int64) bool {
	was := t.factor
	switch {
	case t.lost > 0 && (t.taken+t.lost < judgeFewest || now-t.judgedAt < judgeEvery):
		return false
	case t.lost*fewLost > t.taken+t.lost:
		t.factor = min(2*max(t.factor, 1), factorMost)
	case t.lost == 0 && t.factor > 1 && now-t.lostAt > calmFor:
		t.factor, t.lostAt = t.factor/2, now
	}
	if t.lost > 0 {
		t.lostAt = now
	}
	if now-t.judgedAt >= judgeEvery {
		t.taken, t.lost, t.judgedAt = 0, 0, now
	}
	return t.factor != was
}

// makeUp returns for how many lost samples the next sample of a thread counts. lacks is how many the thread lacks.
func (t *paceKeeper) makeUp(lacks *int64) int64 {
	n := min(t.lacking, *lacks, max(*lacks/owedShare, 1))
	if n <= 0 {
		return 0
	}
	t.lacking -= n
	*lacks -= n
	return n
}

// interval returns the interval that new periods are based on.
func (r *perfRun) interval() uint64 { return uint64(r.cfg.Interval) * uint64(max(r.thin.factor, 1)) }

// keepPace changes the periods of the events if too many samples are lost, or if none are lost any more. A group lowers
// its rate in another way.
func (r *perfRun) keepPace() {
	if r.grouped || r.cfg.NoJitter {
		return
	}
	r.thin.lost += r.q.TakeBehind() // late looks are not lost, so nothing makes up for them
	if !r.thin.judge(r.now) {
		return
	}
	r.q.Paced(ptrace.Monotonic())
	r.wide.setPace(r.thin.factor, r.now)
	for _, th := range r.threads {
		for i := range th.events {
			if e := &th.events[i]; e.fd >= 0 {
				r.setPeriod(e, randomPeriod(r.interval(), r.rng.Float64()))
			}
		}
	}
}

func (r *perfRun) setPeriod(e *perfEvent, period uint64) {
	e.period, e.gaps, e.starting = period, 0, false
	ring.SetPeriod(int(e.fd), &e.period)
	if now := max(r.thin.factor, 1); now != max(e.pace.factor, 1) {
		e.pace.set(now, ptrace.Monotonic())
	}
}

func (r *perfRun) countsFor(th *perfThread, s *ring.Sample) int64 {
	r.thin.taken++
	if th != nil && th.hasEvents() {
		return th.events[r.rings.cpu].pace.at(s.When)
	}
	return r.wide.pace.at(s.When)
}
