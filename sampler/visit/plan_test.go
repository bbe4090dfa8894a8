//go:build linux

package visit

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"goprof/sampler"
	"goprof/sampler/ptrace"
	"goprof/sampler/stops"
)

// planFor makes a plan of visits to a number of CPUs. No preempter gets moments.
func planFor(cpus int) *visits {
	rng := rand.New(rand.NewPCG(7, 8))
	return &visits{cpus: make([]visited, cpus), plan: plan{rng: rng, moments: moments{rng: rng}}}
}

// TestPlanKeepsItsRate: there are as many visits as are due, even if the number of CPUs on which visits met a thread
// changes all the time.
func TestPlanKeepsItsRate(t *testing.T) {
	const cpus, interval = 16, int64(40 * time.Millisecond)
	v := planFor(cpus)
	due, made, last := 0.0, 0, int64(0)
	for now := int64(1e9); now < 2000e9; now += stops.MaxNap {
		for i := range v.cpus {
			if v.cpus[i].metAt = 0; v.rng.IntN(2) == 0 {
				v.cpus[i].metAt = now
			}
		}
		from := max(now, v.until)
		v.draw(now, now+2*stops.MaxNap, interval, func(_ int, at, _ int64) bool {
			if at < last || at < from || at >= v.until {
				t.Fatalf("a moment at %d after one at %d, from %d until %d", at, last, from, v.until)
			}
			last = at
			made++
			return true
		})
		due += float64(v.until-from) * float64(len(v.round)) / float64(interval)
	}
	if d := float64(made)/due - 1; math.Abs(d) > 0.005 {
		t.Errorf("%d visits where %.0f are due: %.1f %%", made, due, 100*d)
	}
}

// TestPlanStandsForAllCPUs: for each CPU, visits stand for as many intervals as have passed, whether or not they met a
// thread there lately.
func TestPlanStandsForAllCPUs(t *testing.T) {
	const cpus, interval, naps = 16, int64(time.Millisecond), 2000
	v := planFor(cpus)
	stands := int64(0)
	each := make([]int64, cpus)
	for now := int64(1e9); now < 1e9+naps*stops.MaxNap; now += stops.MaxNap {
		for i := range 3 {
			v.cpus[i].metAt = now
		}
		v.draw(now, now+stops.MaxNap, interval, func(which int, _, n int64) bool {
			each[which] += n
			stands += n
			return true
		})
	}
	for i, n := range each {
		if share := float64(n) / float64(naps*stops.MaxNap/interval); math.Abs(share-1) > 0.2 {
			t.Errorf("CPU %d has %.2f of its visits", i, share)
		}
	}
	if share := float64(stands) / float64(cpus*naps*stops.MaxNap/interval); math.Abs(share-1) > 0.02 {
		t.Errorf("all CPUs have %.3f of their visits", share)
	}
}

// TestPlanWithoutOnePreempter: a preempter that has no CPU for long gets no more moments. The others do.
func TestPlanWithoutOnePreempter(t *testing.T) {
	v := planFor(2)
	told := 0
	v.draw(1e9, 1e9+2*stops.MaxNap, int64(time.Millisecond), func(which int, _, _ int64) bool {
		told += which
		return which != 0
	})
	if told < 60 || told > 140 || v.missed < 60 || v.missed > 140 {
		t.Errorf("%d visits of one preempter, %d missed of the other", told, v.missed)
	}
}

// TestPreemptersHaveRoom: a preempter has room for the moments that come while the sampling thread sleeps, and for as
// many more.
func TestPreemptersHaveRoom(t *testing.T) {
	for _, interval := range []time.Duration{sampler.MinInterval, 100 * time.Microsecond, time.Millisecond, time.Second} {
		nap := napFor(int64(interval))
		if n := 2 * nap / int64(interval); n > ptrace.PreempterMoments/2 || nap > stops.MaxNap ||
			nap < int64(time.Millisecond) {
			t.Errorf("%v: %d moments, %v", interval, n, time.Duration(nap))
		}
	}
}

// TestPlanCost: if there are many CPUs, the number of visits follows the number of CPUs on which the program runs. All
// other CPUs share one visit in each interval.
func TestPlanCost(t *testing.T) {
	const interval = int64(time.Millisecond)
	for _, cpus := range []int{9, 16, 32, 64, 128, 256, 512, 1024} {
		for _, busy := range []int{0, 1, 8, 64, cpus} {
			if busy > cpus {
				continue
			}
			v := planFor(cpus)
			made := 0
			const from, length = int64(1e9), int64(1e9)
			for now := from; now < from+length; now += stops.MaxNap {
				for i := range busy {
					v.cpus[i].metAt = now
				}
				v.draw(now, now+stops.MaxNap, interval, func(int, int64, int64) bool { made++; return true })
			}
			due := float64(busy) * float64(length/interval)
			if busy < cpus {
				due += float64(length / interval)
			}
			if d := float64(made)/due - 1; math.Abs(d) > 0.05 {
				t.Errorf("%d busy of %d CPUs: %d visits, %.0f are due", busy, cpus, made, due)
			}
		}
	}
}

// TestPlanWorth: if a look also counts for CPUs that have no turn, shares are less precise than the number of samples
// suggests. The spread of shares agrees with profile.Summary.Effective, on 2 to 512 CPUs. On average the shares are
// true.
func TestPlanWorth(t *testing.T) {
	const interval, share, runs, length = int64(time.Millisecond), 0.3, 200, int64(2 * time.Second)
	for _, cpus := range []int{2, 8, 16, 64, 256, 512} {
		spread, expected, plain, shift := 0.0, 0.0, 0.0, 0.0
		for i := range runs {
			v := planFor(cpus)
			rng := rand.New(rand.NewPCG(uint64(i), uint64(cpus)))
			v.plan.rng, v.moments.rng = rng, rng
			busy, until, inA, all, squares := 0, int64(0), 0.0, 0.0, 0.0
			for now := int64(1e9); now < 1e9+length; now += stops.MaxNap {
				v.draw(now, now+2*stops.MaxNap, interval, func(which int, at, stands int64) bool {
					for at >= until { // one thread, which moves to another CPU now and then
						busy, until = rng.IntN(cpus), until+rng.Int64N(int64(600*time.Millisecond))
						until = max(until, at-int64(time.Second))
					}
					if which != busy {
						return true
					}
					v.cpus[which].metAt = at
					n := float64(stands)
					all, squares = all+n, squares+n*n
					if rng.Float64() < share {
						inA += n
					}
					return true
				})
			}
			if all == 0 {
				continue
			}
			shift += inA/all - share
			spread += (inA/all - share) * (inA/all - share)
			expected += share * (1 - share) * squares / (all * all)
			plain += share * (1 - share) / all
		}
		t.Logf("%d CPUs: the variance is %.2f times that of the effective samples, %.2f times that of all", cpus,
			spread/expected, spread/plain)
		if off := math.Abs(shift) / math.Sqrt(spread); off > 4 { // standard errors
			t.Errorf("%d CPUs: shares are off by %.1f standard errors", cpus, off)
		}
		if r := spread / expected; r < 0.7 || r > 1.4 {
			t.Errorf("%d CPUs: the variance of a share is %.2f times what the effective samples say", cpus, r)
		}
	}
}

// TestPlanMeetsByChance: if many CPUs share a visit, a thread that moves from CPU to CPU is met seldom. goprof does not
// give up visits for that. It gives them up if they meet no thread at all.
func TestPlanMeetsByChance(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, cpus := range []int{2, 16, 64, 512} {
		shared := 1
		if cpus > visitsMost {
			shared = cpus
		}
		roams, nobody := &visits{}, &visits{}
		roams.strange, nobody.strange = make([]int, shared), make([]int, shared)
		proved := false
		for expected := range int64(fewMeets * shared * 4) {
			now := 2*provesWithin + expected
			if rng.IntN(shared) == 0 {
				roams.metFor += int64(shared)
			}
			if roams.meetsNobody(expected, now) {
				t.Fatalf("%d CPUs: given up at %d intervals, of which %d were met", cpus, expected, roams.metFor)
			}
			proved = proved || nobody.meetsNobody(expected, now)
		}
		if !proved || nobody.meetsNobody(fewMeets*int64(shared)*4, provesWithin/2) {
			t.Errorf("%d CPUs: who meets nobody does not give up, or at once", cpus)
		}
	}
}
