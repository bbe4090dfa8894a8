//go:build linux

package wall

import (
	"time"

	"goprof/sampler"
	"goprof/sampler/ptrace"
)

// Finding the threads that are late when all threads must stop, as for a safepoint.
//
// At each tick an Engine with GatherOptions reads whether the process waits for threads. If it does, the engine looks
// at the threads that have not stopped yet. A look counts for the time until the next look at its thread, or until the
// thread has stopped. The first look also counts for the time since the threads were asked to stop. When all threads
// have stopped, the process itself says how long that took. So the time of the last thread is exact. Those of the
// others are exact to half a tick. If all threads stopped between two ticks, there is no look, but the account has the
// time.

// Gathering is a reading of the process's state. A gathering is the time from a request that all threads stop until all
// have stopped.
type Gathering struct {
	Under   bool          // the process waits for threads
	Began   int64         // when the last request was, CLOCK_MONOTONIC; 0: not known
	Counted bool          // Count and Took are known
	Count   uint64        // how many requests there were
	Took    time.Duration // the sum of all gatherings so far
}

// GatherOptions say what to read from a process.
type GatherOptions struct {
	// Read reads the process's state; false: it is not known now. All functions of GatherOptions are called on the
	// sampler's OS thread.
	Read func() (Gathering, bool)
	// Missing appends the threads that have not stopped, each as the Side of its Hint. False: the gathering is over.
	Missing func(into []uint64) ([]uint64, bool)
	// Unknown is called with a late thread that Advise does not know. It must not wait, and may be nil.
	Unknown func()
	// Seen is called once for each gathering that a tick finds. It may be nil.
	Seen func()
}

// gatherRun is a run that looks at late threads.
type gatherRun struct {
	*wallRun
	ask     *GatherOptions
	bySide  map[uint64]int
	sides   map[int]uint64
	missing []uint64
	counts  sampler.GatherCounts

	first, last Gathering
	known       bool  // first and last are set
	readAt      int64 // when last was read
	listedAt    int64

	// The present gathering.
	open  bool
	began int64
	exact bool // began is what the process reports
	late  map[int]*lateThread
}

// lateThread is a thread that was looked at in this gathering.
type lateThread struct {
	th    *watched
	since int64 // its looks count for the time until then
	seen  int64 // when the thread was last missing
}

func newGatherRun(r *wallRun) *gatherRun {
	g := &gatherRun{wallRun: r, ask: r.opt.Gather, bySide: map[uint64]int{}, sides: map[int]uint64{},
		late: map[int]*lateThread{}}
	r.Sum = g.total
	return g
}

// listLateEvery is how often the threads are listed. A new thread is not late at once.
const listLateEvery = int64(20 * time.Millisecond)

// loop reads at each tick, at a random moment, whether the process waits for threads to reach a safepoint. If so, loop
// looks at the late threads.
func (r *gatherRun) loop() {
	for {
		at := r.Ticks.At() + r.Ticks.RandomWithin(int64(r.Ticks.Interval))
		if !r.Sleep(at) {
			return
		}
		r.Stats.Ticks++
		r.countGap()
		if r.now = ptrace.Monotonic(); r.now-r.listedAt >= listLateEvery {
			r.threads.list()
			r.hints.Take(r.noteHint, r.threads.whole)
			r.listedAt, r.now = r.now, ptrace.Monotonic()
		}
		r.tick()
		if r.Over() {
			return
		}
		r.NextTick()
	}
}

// noteHint sets a thread's hint, and enters the thread into bySide, because Missing names threads by their Side. It
// returns false for an unknown thread.
func (r *gatherRun) noteHint(tid int, hint ptrace.Hint) bool {
	if r.setHint(tid, hint); r.threads.byTID[tid] == nil {
		return false
	}
	delete(r.bySide, r.sides[tid])
	delete(r.sides, tid)
	if hint.Side != 0 && len(r.sides) < sampler.MostHints {
		r.bySide[hint.Side], r.sides[tid] = tid, hint.Side
	}
	return true
}

// tick reads which threads the process still waits for, and looks at them.
func (r *gatherRun) tick() {
	var g Gathering
	ok := false
	if !r.Tracer.Apart(func() { g, ok = r.ask.Read() }) {
		r.CheckEnd(ptrace.Silent, true)
		return
	}
	if !ok {
		r.Tracer.ApartFailed()
		return
	}
	if !r.known {
		r.first, r.last, r.known, r.readAt = g, g, true, r.now
		if g.Under {
			return // it is not known since when the process has waited
		}
	}
	if r.open && (!g.Under || g.Count != r.last.Count || g.Began != r.last.Began) {
		r.close(r.now, &g)
	}
	if g.Under && !r.first.sameAs(&g) {
		if !r.open {
			r.begin(&g)
		}
		r.lookAtMissing()
	}
	r.last, r.readAt = g, r.now
}

// sameAs reports whether both readings are of the same gathering.
func (g *Gathering) sameAs(o *Gathering) bool {
	return g.Under && o.Under && g.Count == o.Count && g.Began == o.Began
}

// begin finds out when the process asked its threads to stop. If the process does not report it, begin assumes the
// middle between the last tick and this one.
func (r *gatherRun) begin(g *Gathering) {
	r.open, r.exact = true, g.Began >= r.readAt && g.Began <= r.now
	r.began = r.readAt + (r.now-r.readAt)/2
	if r.exact {
		r.began = g.Began
	}
	clear(r.late)
	r.counts.Seen++
	if !g.Counted {
		r.counts.Count++
	}
	if r.ask.Seen != nil {
		r.Tracer.Apart(r.ask.Seen)
	}
}

// mostLate is how many threads are looked at in one tick. The others are left to the next tick.
const mostLate = 64

func (r *gatherRun) lookAtMissing() {
	ok := false
	r.Tracer.Apart(func() { r.missing, ok = r.ask.Missing(r.missing[:0]) })
	if !ok {
		return
	}
	start := 0
	if n := len(r.missing); n > mostLate {
		start = r.Ticks.Rng.IntN(n)
	}
	for i := range min(len(r.missing), mostLate) {
		side := r.missing[(start+i)%len(r.missing)]
		th := r.threads.byTID[r.bySide[side]]
		switch {
		case th == nil:
			r.counts.Unknown++
			r.listedAt = 0
			if r.ask.Unknown != nil {
				r.ask.Unknown()
			}
		case !th.hint.Skip && !th.zombie:
			r.lookAtLate(th)
		}
		if r.Over() {
			return
		}
	}
}

// lookAtLate looks at one thread that has not stopped yet.
func (r *gatherRun) lookAtLate(th *watched) {
	now := ptrace.Monotonic()
	l := r.late[th.tid]
	if l == nil {
		l = &lateThread{th: th, since: min(r.began, now)}
		r.late[th.tid] = l
		th.tally = nil
	}
	l.seen = now
	if th.pending { // the thread was told to stop, but has had no CPU to stop on
		return
	}
	l.count(now)
	stat, ok := r.threads.readCharged(th)
	if !ok {
		r.threads.forget(th)
		return
	}
	th.owed, th.owedTime, th.waited, th.later = 1, 0, 0, true
	th.before, th.beganAt, th.still, th.tally = stat, now, false, nil
	r.lookAnew(th)
}

// count gives the last look at a thread the time up to the moment until. If the last look has no result, the time goes
// to the next look.
func (l *lateThread) count(until int64) {
	if l.th.tally != nil && until > l.since {
		l.th.tally.Add(1, time.Duration(until-l.since), until)
		l.since, l.th.tally = until, nil
	}
}

// close ends a gathering: all threads have stopped since the last tick. g is the process's present state, nil if it was
// not read.
func (r *gatherRun) close(now int64, g *Gathering) {
	if !r.open {
		return
	}
	r.open = false
	took := time.Duration(r.readAt + (now-r.readAt)/2 - r.began)
	if g != nil && g.Counted && r.last.Counted {
		if alone := g.Count == r.last.Count || g.Count == r.last.Count+1 && g.Under; alone && g.Took > r.last.Took {
			took = g.Took - r.last.Took
		}
	}
	end := r.began + int64(took)
	if r.exact {
		end = min(end, now)
	}
	latest := int64(0)
	for _, l := range r.late {
		latest = max(latest, l.seen)
	}
	for _, l := range r.late {
		// A thread that was missing at the last tick stopped before the end. A thread that was last missing at an
		// earlier tick stopped before the tick that did not find it.
		until := end
		if l.seen < latest-int64(r.Ticks.Interval)/2 {
			until = l.seen + int64(r.Ticks.Interval)/2
		}
		if until = max(until, l.since+1); l.th.pending { // its look counts when the stop comes
			l.th.owedTime, l.th.later = time.Duration(until-l.since), false
			continue
		}
		l.count(until)
	}
	r.counts.SeenFor += took
	r.counts.Longest = max(r.counts.Longest, took)
	if g == nil || !g.Counted {
		r.counts.Took += took
	}
}

func (r *gatherRun) total() sampler.Stats {
	s := r.wallRun.total()
	c := r.counts
	if r.known && r.last.Counted && r.first.Counted {
		c.Counted = true
		c.Count = int64(r.last.Count - r.first.Count)
		c.Took = r.last.Took - r.first.Took
	}
	s.Gathered = c
	return s
}
