//go:build linux

package sampler

import (
	"math/rand/v2"
	"time"

	"goprof/sampler/ptrace"
)

// Which CPU is visited at which moment.
//
// Moments are drawn (moments.go), and for each of them a CPU. A herald is told its moments some time ahead. So the
// moment of a visit depends on no other visit. Only where we are busy with the visit of another CPU, the herald waits
// until we are free. A moment at which we have the CPU ourselves is void: nobody can be met then, so

//	visits = time that was not ours / interval
//
// on each CPU.

const (
	// visitsMost: where there are more CPUs, those on which nobody was met lately share one visit in each interval.
	visitsMost = 8
	// metLately is how long a CPU is known as one on which the program runs.
	metLately = int64(time.Second)
	// ahead is for how long heralds know their moments.
	ahead = 2 * maxNap
)

// plan draws the visits.
type plan struct {
	rng     *rand.Rand
	moments moments
	round   []int // the CPUs from which the next is drawn
	turn    int   // visits since round was made
	strange []int // the CPUs on which nobody was met lately; one of them has a turn
	drawn   drawn // and not told yet
	until   int64 // heralds know their moments until then
	// Visits since settle was last called. left is how many were missed in all.
	held, missed, left int64
	// All visits that were held, those that met anybody, and the CPU time of the heralds.
	all, meeting, cpu int64
	// What the heralds that there are have counted, as of takeCounts.
	counted ptrace.VisitCounts
}

// drawn is a visit.
type drawn struct {
	which      int
	at, stands int64
}

func newPlan(exact bool) plan {
	rng := rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))
	return plan{rng: rng, moments: moments{rng: rng, exact: exact}}
}

// startPlan begins anew: new heralds know no moments and have counted nothing.
func (v *visits) startPlan() { v.until, v.drawn, v.counted = 0, drawn{}, ptrace.VisitCounts{} }

// next draws which CPU to visit next. Where many CPUs have met nobody lately, one of them has a turn in a round.
//
// The CPU is drawn anew each time. The scheduler moves threads away from the CPU where we are at work. So if we went
// round, we would meet a thread that runs all the time twice, or never.
func (v *visits) next(now int64) (which int) {
	if v.turn++; v.turn >= len(v.round) {
		v.newRound(now)
	}
	return v.round[v.rng.IntN(len(v.round))]
}

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
		v.round = append(v.round, v.strange[v.rng.IntN(len(v.strange))])
	}
}

// weight is how many visits to that CPU one stands for: it stands also for the CPUs that have no turn in this round.
func (v *visits) weight(which int) int64 {
	for _, i := range v.strange {
		if i == which {
			return int64(len(v.strange))
		}
	}
	return 1
}

// meanGap is the mean time between two visits.
func (v *visits) meanGap(interval int64) int64 { return interval / int64(max(len(v.round), 1)) }

// tell tells the heralds their next moments.
func (v *visits) tell(now, interval int64) {
	if v.until >= now+ahead/2 {
		return
	}
	if v.moments.step != 0 {
		v.miss(v.moments.catchUp(now))
	}
	for v.until < now+ahead {
		if v.drawn.at == 0 {
			v.draw(now, interval)
		}
		d := v.drawn
		if !v.heralds.Tell(d.which, d.at, d.stands) {
			break
		}
		v.until, v.drawn.at = d.at, 0
	}
}

func (v *visits) draw(now, interval int64) {
	which := v.next(now)
	if step := v.meanGap(interval); step != v.moments.step {
		v.moments.begin(max(now, v.until), step)
		v.heralds.SetPatience(v.moments.patience())
	}
	v.drawn = drawn{which, v.moments.at(), v.weight(which)}
	v.moments.skip()
}

// miss notes visits that were missed.
func (v *visits) miss(n int64) {
	v.missed += n
	v.left += n
}

// takeCounts takes in what the heralds have counted.
func (v *visits) takeCounts() {
	if v.heralds == nil {
		return
	}
	now := v.heralds.Counts()
	held := now.Held - v.counted.Held
	v.held += held
	v.all += held
	v.meeting += now.Met - v.counted.Met
	v.cpu += now.CPU - v.counted.CPU
	v.miss(now.Missed - v.counted.Missed)
	v.counted = now
}

// settle returns how many intervals the visits make up that were held and missed since settle was called last.
func (v *visits) settle(interval int64) (held, missed int64) {
	v.takeCounts()
	each := max(interval/max(v.moments.step, 1), 1)
	held, missed = v.held/each, v.missed/each
	v.held -= held * each
	v.missed -= missed * each
	return held, missed
}
