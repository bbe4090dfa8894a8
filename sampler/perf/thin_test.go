//go:build linux

package perf

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"goprof/sampler"
	"goprof/sampler/ptrace"
)

// TestPaceFollowsLosses: the factor grows until little is lost, and shrinks when nothing has been lost for long.
func TestPaceFollowsLosses(t *testing.T) {
	var p paceKeeper
	now, room := int64(1e12), int64(100) // samples of a judgement for which there is room
	step := func() {
		now += judgeEvery
		n := 1000 / int64(max(p.factor, 1))
		p.taken += min(n, room)
		p.lose(max(n-room, 0), max(n-room, 0)*int64(max(p.factor, 1)))
		p.judge(now)
	}
	for range 20 {
		step()
	}
	if p.factor != 16 {
		t.Errorf("with room for one in 10 the factor is %d", p.factor)
	}
	room = 1000
	for range int(6*calmFor/judgeEvery) + 10 {
		step()
	}
	if p.factor != 1 {
		t.Errorf("with room for all the factor is %d", p.factor)
	}
	if p = (paceKeeper{}); p.judge(now) || p.factor > 1 {
		t.Error("without losses the factor changes")
	}
}

// TestLostCountAsTaken: a lost sample counts in the account for as many as one that is taken would. The factor follows
// how many of the samples were lost, not what they stood for: one in fifty is too few to double a factor of 4.
func TestLostCountAsTaken(t *testing.T) {
	r := &perfRun{}
	r.thin.factor, r.thin.taken = 4, 1000
	r.Lose(ptrace.QueueFull, 20)
	r.Lose(ptrace.NoRegisters, 3)
	if r.stats.Lost[ptrace.QueueFull] != 80 || r.stats.Lost[ptrace.NoRegisters] != 12 || r.stats.Attempted != 92 {
		t.Errorf("lost %v of %d", r.stats.Lost, r.stats.Attempted)
	}
	if r.thin.lacking != 80 {
		t.Errorf("%d are to be made up for", r.thin.lacking)
	}
	if r.thin.judge(1e12); r.thin.factor != 4 {
		t.Errorf("20 of 1,020 were lost, and the factor is %d", r.thin.factor)
	}
}

// TestPaceFollowsTheWalker: if looks wait ever longer for their walk, goprof takes fewer. The waits of looks from
// before that change do not count.
func TestPaceFollowsTheWalker(t *testing.T) {
	r := &perfRun{q: sampler.NewQueue(4), now: 1e12,
		wide: &wideEvents{interval: int64(time.Second / 100), rng: rand.New(rand.NewPCG(1, 2))}}
	step := func(late int, when int64) int32 {
		r.now += judgeEvery
		r.thin.taken += judgeFewest
		for range late {
			r.q.Behind(when)
		}
		r.keepPace()
		return r.thin.factor
	}
	for i, s := range []struct {
		late int
		when int64
		want int32
	}{{0, math.MaxInt64, 0}, {judgeFewest, math.MaxInt64, 2}, {judgeFewest, 1, 2}, {judgeFewest, math.MaxInt64, 4}} {
		if got := step(s.late, s.when); got != s.want {
			t.Errorf("step %d: the factor is %d, not %d", i, got, s.want)
		}
	}
	if r.thin.lacking != 0 {
		t.Errorf("%d samples are to be made up for, and none was lost", r.thin.lacking)
	}
}

// TestPaceOfASample: a sample counts by the period with which it was taken, however late it is read.
func TestPaceOfASample(t *testing.T) {
	var p pace
	p.set(2, 100)
	p.set(8, 200)
	for when, want := range map[int64]int64{150: 2, 199: 2, 200: 8, 1000: 8} {
		if got := p.at(when); got != want {
			t.Errorf("at %d it counts %d, not %d", when, got, want)
		}
	}
	if (&pace{}).at(0) != 1 {
		t.Error("without a factor a sample counts once")
	}
}

// TestLostSamplesAreMadeUp: one of two threads loses most of its samples. The shares of both are still those of their
// CPU time.
func TestLostSamplesAreMadeUp(t *testing.T) {
	for _, madeUp := range []bool{false, true} {
		rng := rand.New(rand.NewPCG(1, 2))
		var p paceKeeper
		var counted, used, lacks [2]int64
		for i := range 4000 {
			which := 0
			if rng.Float64() < 0.4 {
				which = 1
			}
			used[which]++
			if which == 1 && i/500%2 == 0 { // for stretches of time
				p.lose(1, 1)
				continue
			}
			n := int64(1)
			if madeUp {
				n += p.makeUp(&lacks[which])
			}
			counted[which] += n
			if i%20 == 0 { // the end of a batch
				for w := range lacks {
					lacks[w] = used[w] - counted[w]
				}
			}
		}
		share := float64(counted[1]) / float64(counted[0]+counted[1])
		truth := float64(used[1]) / float64(used[0]+used[1])
		if off := math.Abs(share - truth); (off < 0.02) != madeUp {
			t.Errorf("made up %v: a share of %.3f, in truth %.3f", madeUp, share, truth)
		}
	}
}
