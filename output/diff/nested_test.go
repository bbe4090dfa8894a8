package diff

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestBoth: the wanted numbers are known, or come from another integral (over one of both numbers, 100,000 parts).
func TestBoth(t *testing.T) {
	integral := func(p, q, correlation float64) float64 {
		h, k := math.Sqrt2*math.Erfcinv(p), math.Sqrt2*math.Erfcinv(q)
		const width, parts = 1e-4, 100_000
		sum, rest := 0.0, math.Sqrt(1-correlation*correlation)
		for i := range parts {
			x := h + (float64(i)+0.5)*width
			sum += math.Exp(-x*x/2) / math.Sqrt(2*math.Pi) * math.Erfc((k-correlation*x)/rest/math.Sqrt2) / 2 * width
		}
		return 2 * sum
	}
	for _, c := range []struct{ p, q, correlation, want float64 }{
		{0.01, 0.04, 0, 0.01 * 0.04 / 2},
		{0.01, 0.01, 1, 0.01},
		{1, 1, 0.5, 0.5 + 1.0/6}, // the same sign: 1/2 + asin(correlation)/pi
		{0.01, 0.01, 0.9, integral(0.01, 0.01, 0.9)},
		{0.0005, 0.002, 0.98, integral(0.0005, 0.002, 0.98)},
		{0.00002, 0.00001, 0.3, integral(0.00002, 0.00001, 0.3)},
	} {
		if got := both(c.p, c.q, c.correlation); math.Abs(got-c.want) > 1e-3*c.want {
			t.Errorf("both(%v, %v, %v) is %v, want %v", c.p, c.q, c.correlation, got, c.want)
		}
	}
}

// recursion returns items that contain each other: levels of a recursion with this share of all samples.
func recursion(levels int, share float64) (list []evidence, pairs []pair) {
	const total = 1e6
	for i := range levels {
		in := int64(share * total * float64(levels-i) / float64(levels))
		list = append(list, evidence{item: &item{prints: uint64(i + 1), sum: [sides]int64{in, in}},
			total: [sides]float64{total, total}, inflation: 1, p: 1})
		if i > 0 {
			pairs = append(pairs, pair{int32(i), int32(i - 1)})
		}
	}
	return list, pairs
}

// TestNestedRisk: the share of comparisons with a significant item, although nothing has changed, is at most the risk.
// Shares of a recursion's levels are drawn as those of independent samples.
func TestNestedRisk(t *testing.T) {
	const levels, share, draws = 20, 0.25, 4000
	list, pairs := recursion(levels, share)
	rng := rand.New(rand.NewPCG(3, 4))
	any, alone := 0, 0
	for range draws {
		var own [levels]float64 // the deviation of each level's own share, in standard deviations of a share of 1
		all := math.Sqrt(1-share) * rng.NormFloat64()
		for i := range own {
			own[i] = math.Sqrt(share/levels) * rng.NormFloat64()
			all += own[i]
		}
		moved := 0.0
		for i := levels - 1; i >= 0; i-- {
			in := list[i].pooled()
			moved += own[i] - share/levels*all
			list[i].p = student(moved/math.Sqrt(in*(1-in)), math.Inf(1))
		}
		holm(list, pairs)
		if first(list) {
			any++
		}
		holm(list, nil)
		if first(list) {
			alone++
		}
	}
	rate, without := float64(any)/draws, float64(alone)/draws
	t.Logf("%.4f of comparisons have a significant item; %.4f with Holm's correction alone", rate, without)
	if most := Risk + 3*math.Sqrt(Risk*(1-Risk)/draws); rate > most {
		t.Errorf("%.4f of comparisons have a significant item", rate)
	}
	if rate < 1.5*without {
		t.Errorf("what the levels have in common hardly counts: %.4f, and %.4f without", rate, without)
	}
}

func first(list []evidence) bool {
	for i := range list {
		if list[i].held <= Risk {
			return true
		}
	}
	return false
}

// TestQuestions: items with nearly the same samples are nearly one question. After one is rejected, the others count as
// if it had never been there.
func TestQuestions(t *testing.T) {
	list, pairs := recursion(3, 0.003)
	list[0].item.sum, list[1].item.sum = [sides]int64{300_000, 300_000}, [sides]int64{299_990, 299_990}
	list[2].item.sum = [sides]int64{100, 100}
	for i := range list {
		list[i].weight = 1
	}
	of := func(change func()) (sum float64) {
		change()
		return newQuestions([]*evidence{&list[0], &list[1], &list[2]}, list, pairs).sum
	}
	near := func(got, want float64) bool { return math.Abs(got-want) < 0.05 }
	if got := of(func() {}); !near(got, 2) {
		t.Errorf("two of three are nearly the same samples: %.3f questions", got)
	}
	if got := of(func() { list[0].inflation = 100 }); !near(got, 3) {
		t.Errorf("one varies for reasons of its own: %.3f questions", got)
	}
	if got := of(func() { list[0].inflation, pairs = 1, append(pairs, pair{0, 1}, pair{2, 0}) }); !near(got, 2) {
		t.Errorf("pairs in a circle: %.3f questions", got)
	}
	q := newQuestions([]*evidence{&list[0], &list[1], &list[2]}, list, pairs)
	if q.reject(&list[0]); !near(q.sum, 2) {
		t.Errorf("without one of two that are nearly the same: %.3f questions", q.sum)
	}
	if q.reject(&list[2]); !near(q.sum, 1) {
		t.Errorf("%.3f questions are left of one", q.sum)
	}
}
