//go:build linux

package visit

import (
	"math/rand/v2"
	"time"

	"goprof/sampler/ptrace"
	"goprof/sampler/stops"
)

// Which CPU is visited at which moment.
//
// Moments are drawn (moments.go), and for each of them a CPU. A preempter gets its moments some time ahead. So the
// moment of a visit does not depend on other visits, with one exception: a preempter waits while the sampling thread is
// busy with another CPU. A visit meets no thread if the CPU is idle or goprof itself has it. Such a visit counts as
// held, too. So on each CPU
//
//	visits held = time / interval
//	visits that meet a thread = its CPU time / interval

const (
	// visitsMost: with more CPUs than that, those on which no visit met a thread lately share one visit in each
	// interval.
	visitsMost = 8
	// metLately is how long after a visit that met a thread a CPU counts as one that the program uses.
	metLately = int64(time.Second)
)

// napFor returns the longest time that the sampling thread sleeps before it gives the preempters their next moments.
// They get moments for twice that time: on average they fill half of a preempter's room.
func napFor(interval int64) int64 { return min(stops.MaxNap, ptrace.PreempterMoments/4*interval) }

type plan struct {
	rng     *rand.Rand
	moments moments
	round   []int // the CPUs from which next draws
	turn    int   // visits since drawStrange
	strange []int // the CPUs on which no visit met a thread lately; one of them has a turn, the last one of round
	until   int64 // the preempters know their moments until then
	// Visits since the last settle. left is the sum of all missed ones.
	held, missed, left int64
	// All visits that were held, those that met a thread, and the preempters' CPU time.
	all, meeting, cpu int64
	// The counts of the present preempters at the last takeCounts.
	counted ptrace.VisitCounts
}

func newPlan(exact bool) plan {
	rng := rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))
	return plan{rng: rng, moments: moments{rng: rng, exact: exact}}
}

// startPlan starts a plan for new preempters, which have no moments and have counted nothing.
func (v *visits) startPlan() { v.until, v.counted = 0, ptrace.VisitCounts{} }

// next draws which CPU to visit next. Among the CPUs on which visits met no thread lately, only one is visited in a
// round.
//
// The CPU is drawn again each time. The scheduler moves threads away from the CPU where the sampling thread is at work.
// In a fixed order a thread that runs all the time would be met twice, or never.
func (v *visits) next() (which int) {
	if v.turn++; v.turn >= len(v.round) {
		v.turn = 0
		v.drawStrange()
	}
	return v.round[v.rng.IntN(len(v.round))]
}

// drawStrange draws which of the strange CPUs has a turn.
func (v *visits) drawStrange() {
	if len(v.strange) > 0 {
		v.round[len(v.round)-1] = v.strange[v.rng.IntN(len(v.strange))]
	}
}

// newRound updates on which CPUs visits met a thread lately.
func (v *visits) newRound(now int64) {
	v.turn, v.round, v.strange = 0, v.round[:0], v.strange[:0]
	for i, c := range v.cpus {
		if len(v.cpus) <= visitsMost || c.metAt != 0 && now-c.metAt < metLately {
			v.round = append(v.round, i)
		} else {
			v.strange = append(v.strange, i)
		}
	}
	if len(v.strange) > 0 {
		v.round = append(v.round, 0)
		v.drawStrange()
	}
}

// weight returns how many visits one visit to this CPU stands for: it also stands for the CPUs that have no turn in
// this round.
func (v *visits) weight(which int) int64 {
	for _, i := range v.strange {
		if i == which {
			return int64(len(v.strange))
		}
	}
	return 1
}

func (v *visits) meanGap(interval int64) int64 { return interval / int64(max(len(v.round), 1)) }

// tell gives the preempters their next moments.
//
// A preempter gets its moments some time ahead. If the CPUs or the interval change, that takes effect only after the
// last of these moments. So the time of the change depends on no visit. A round must not end exactly at its last
// moment: visits would be too dense before that point. (Of 32 moments in a time, the k-th is expected after k/33 of the
// time.)
func (v *visits) tell(now, interval int64) {
	nap := napFor(interval)
	if v.until >= now+nap {
		return
	}
	if v.moments.step != 0 {
		v.miss(v.moments.catchUp(now))
	}
	v.draw(now, now+2*nap, interval, v.preempters.Tell)
	v.preempters.SetPatience(v.moments.patience())
}

// draw draws the visits up to a moment, and calls tell with each of them.
func (v *visits) draw(now, until, interval int64, tell func(which int, at, stands int64) bool) {
	v.newRound(now)
	if step := v.meanGap(interval); step != v.moments.step {
		v.moments.begin(max(now, v.until), step)
	}
	for v.until = until; v.moments.at() < until; v.moments.skip() {
		which := v.next()
		if !tell(which, v.moments.at(), v.weight(which)) {
			v.miss(1) // that preempter has had no CPU for a long time
		}
	}
}

func (v *visits) miss(n int64) {
	v.missed += n
	v.left += n
}

func (v *visits) takeCounts() {
	if v.preempters == nil {
		return
	}
	now := v.preempters.Counts()
	held := now.Held - v.counted.Held
	v.held += held
	v.all += held
	v.meeting += now.Met - v.counted.Met
	v.cpu += now.CPU - v.counted.CPU
	v.miss(now.Missed - v.counted.Missed)
	v.counted = now
}

// settle returns the visits that were held and missed since the last settle, in intervals.
func (v *visits) settle(interval int64) (held, missed int64) {
	v.takeCounts()
	each := max(interval/max(v.moments.step, 1), 1)
	held, missed = v.held/each, v.missed/each
	v.held -= held * each
	v.missed -= missed * each
	return held, missed
}
