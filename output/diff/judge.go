package diff

import (
	"cmp"
	"maps"
	"math"
	"slices"
)

const (
	// Risk bounds how many comparisons report a significant change, of those in which nothing has changed.
	Risk = 0.05
	// Assumed is the assumed ratio of a share's variance to that of independent looks if neither recording has times to
	// measure it. Most recordings of CPU time have less (docs/evidence/diff.md).
	Assumed = 2.0
)

// evidence is what is known about one item's change.
type evidence struct {
	item      *item
	total     [sides]float64 // of all items
	variance  [sides]float64 // of the item's count
	df        float64
	inflation float64 // the larger one of both sides
	fewest    float64 // the smallest p that is possible with so many samples
	weight    float64 // of the risk: see weigh
	between   between // recordings
	p, held   float64 // alone, and after Holm's correction
	differs   bool    // by more than noise within the recordings makes, without starts
}

func (e *evidence) share(s Side) float64 { return float64(e.item.sum[s]) / e.total[s] }

func (e *evidence) change() float64 { return e.share(After) - e.share(Before) }

// pooled is the item's share in both sides together.
func (e *evidence) pooled() float64 {
	return float64(e.item.sum[Before]+e.item.sum[After]) / (e.total[Before] + e.total[After])
}

// judge returns the evidence about an item. step says that the item is in Options.Steps.
func (c *Comparison) judge(i *item, n *noise, step bool) evidence {
	e := evidence{item: i, total: [sides]float64{float64(c.sides[Before].total), float64(c.sides[After].total)}}
	inflation, df := n.inflation(c, &e)
	e.df = df
	for s := range sides {
		alone := c.independent(&e, s)
		e.variance[s] = max(alone*inflation, alone+c.drift(&e, s))
		if !step {
			e.variance[s] = max(e.variance[s], c.standing(&e, s))
		}
		e.inflation = max(e.inflation, e.variance[s]/alone)
	}
	e.fewest = c.fewest(&e)
	return e
}

// decide finds the p of all items, after it is known how recordings differ. It returns the number of hypotheses, and
// the limit: an item is significant if its p divided by its weight is at most the limit. within is the limit for noise
// within the recordings alone.
func (c *Comparison) decide(list []evidence, pairs []pair) (hypotheses int, limit, within float64) {
	for i := range list {
		e := &list[i]
		e.p = e.chanceWithin(e.least())
	}
	_, within = holm(list, pairs)
	p := newPrior(list)
	for i := range list {
		e := &list[i]
		e.differs = e.held <= Risk
		e.between.settle(e, &p)
		if p := e.pooled(); p > 0 && p < 1 {
			for s := range sides {
				e.inflation = max(e.inflation, e.between.error2[s]*e.total[s]*e.total[s]/c.independent(e, s))
			}
		}
		before, after := e.least()
		e.p = max(e.p, e.between.chance(after-before))
	}
	hypotheses, limit = holm(list, pairs)
	return hypotheses, limit, within
}

func (c *Comparison) look(s Side) float64 {
	return float64(c.sides[s].total) / float64(c.sides[s].looks)
}

// independent returns the variance of an item's count if looks are independent, with the share in both recordings
// together.
func (c *Comparison) independent(e *evidence, s Side) float64 {
	p := e.pooled()
	return max(p*(1-p)*e.total[s]*c.look(s), math.SmallestNonzeroFloat64)
}

// standing returns the variance of an item's count if its standings are independent.
func (c *Comparison) standing(e *evidence, s Side) float64 {
	p := e.pooled()
	return (1-p)*(1-p)*e.item.squares[s] + p*p*(1-p)*e.total[s]*c.look(s)
}

// fewest returns the smallest possible p of the item: the p if all its looks were on one side.
func (c *Comparison) fewest(e *evidence) float64 {
	looks := [sides]float64{float64(c.sides[Before].looks), float64(c.sides[After].looks)}
	in := e.share(Before)*looks[Before] + e.share(After)*looks[After]
	in = min(in, looks[Before]+looks[After]-in)
	q := looks[After] / (looks[Before] + looks[After])
	return min(2*math.Pow(min(q, 1-q), in), 1)
}

// chance returns the probability that noise alone makes two shares differ by at least as much.
func (e *evidence) chance(before, after float64) float64 {
	return max(e.chanceWithin(before, after), e.between.chance(after-before))
}

// chanceWithin returns the probability that noise within the recordings alone makes such a change. It makes two tests,
// and returns the larger result: Student's test of the difference of the shares, and an exact test of two counts.
func (e *evidence) chanceWithin(before, after float64) float64 {
	p := e.pooled()
	if p <= 0 || p >= 1 {
		return 1
	}
	var error2, equivalent [sides]float64
	for s := range sides {
		error2[s] = e.variance[s] / (e.total[s] * e.total[s])
		equivalent[s] = min(p, 1-p) / error2[s] // a Poisson count of so many looks has this error
	}
	change := after - before
	t := change / math.Sqrt(error2[Before]+error2[After])
	if p > 0.5 { // the exact test is of the rarer one: the item, or all others
		before, after = 1-before, 1-after
	}
	counts := [sides]float64{before * equivalent[Before], after * equivalent[After]}
	exact := binomial(counts[After], counts[Before]+counts[After],
		equivalent[After]/(equivalent[Before]+equivalent[After]))
	return max(student(t, e.df), exact)
}

// noise returns the smallest change in the same direction whose p is at most limit.
func (e *evidence) noise(limit float64) float64 { return e.smallest(limit, e.chance) }

func (e *evidence) smallest(limit float64, chance func(before, after float64) float64) float64 {
	sign, p := 1.0, e.pooled()
	if e.change() < 0 {
		sign = -1
	}
	part := e.total[Before] / (e.total[Before] + e.total[After])
	at := func(d float64) float64 {
		clip := func(share float64) float64 { return min(max(share, 0), 1) }
		return chance(clip(p-sign*d*(1-part)), clip(p+sign*d*part))
	}
	if at(1) > limit {
		return 1
	}
	_, most := bisect(0, 1, 30, middle, func(d float64) bool { return at(d) > limit })
	return most
}

// bisect searches the point between low and high at which below becomes false. It takes the given number of steps, and
// returns the two points around it. mid is middle, or geometric for a range of several orders of magnitude.
func bisect(low, high float64, steps int, mid func(low, high float64) float64,
	below func(float64) bool) (float64, float64) {
	for range steps {
		if x := mid(low, high); below(x) {
			low = x
		} else {
			high = x
		}
	}
	return low, high
}

func middle(low, high float64) float64    { return (low + high) / 2 }
func geometric(low, high float64) float64 { return math.Sqrt(low * high) }

// holm corrects for many comparisons. It returns the number of hypotheses, and a limit: an item is significant if its p
// divided by its weight is at most the limit. After some hypotheses are rejected, the remaining ones are counted again.
// Their number never grows: few hypotheses have no higher probability of a false alarm than many.
func holm(list []evidence, pairs []pair) (hypotheses int, limit float64) {
	hypotheses = testable(list)
	order := weigh(list, hypotheses)
	slices.SortFunc(order, func(a, b *evidence) int {
		return cmp.Or(cmp.Compare(a.p/a.weight, b.p/b.weight), cmp.Compare(a.item.prints, b.item.prints),
			cmp.Compare(a.item.number, b.item.number))
	})
	open := newQuestions(order, list, pairs)
	held, left := 0.0, math.Inf(1)
	limit = -1
	for _, e := range order {
		if open.of[e.item.prints] == nil {
			e.held = held // the same samples as an item before
			continue
		}
		left = min(left, open.sum)
		rank := max(left, e.weight)
		held = max(held, min(e.p/e.weight*rank, 1))
		e.held = held
		if held > Risk && limit < 0 {
			limit = Risk / rank
		}
		open.reject(e)
	}
	if limit < 0 {
		limit = Risk
	}
	return hypotheses, limit
}

// evenly is how much of the risk is divided equally among the hypotheses.
const evenly = 0.25

// weigh divides the risk among the hypotheses. A part of it is divided equally, the rest in proportion to the variance
// of their shares. A change of some points in a small method is far beyond its noise, so a small method needs no larger
// weight. Large methods need it, and they are few. Weights may depend on the share in both sides together, which does
// not show how the sides differ (Genovese, Roeder and Wasserman, Biometrika 2006). weigh returns the items that are
// hypotheses. The sum of their weights is their number.
func weigh(list []evidence, hypotheses int) (order []*evidence) {
	met := make(map[uint64]bool)
	variances := 0.0
	for i := range list {
		e := &list[i]
		e.held, e.weight = 1, evenly
		if Risk/float64(hypotheses) < e.fewest {
			continue
		}
		order = append(order, e)
		if !met[e.item.prints] {
			met[e.item.prints] = true
			variances += e.pooled() * (1 - e.pooled())
		}
	}
	for _, e := range order {
		if variances > 0 {
			e.weight += (1 - evenly) * float64(len(met)) * e.pooled() * (1 - e.pooled()) / variances
		}
	}
	return order
}

// testable is Tarone's number: the number of hypotheses that have enough samples to become significant with a
// correction for that number.
func testable(list []evidence) int {
	fewest := make(map[uint64]float64)
	for i := range list {
		fewest[list[i].item.prints] = list[i].fewest
	}
	values := slices.Sorted(maps.Values(fewest))
	// The smallest m such that no more than m of them reach Risk / m.
	low, high := 1, max(len(values), 1)
	for low < high {
		m := (low + high) / 2
		can, _ := slices.BinarySearchFunc(values, Risk/float64(m), func(p, limit float64) int {
			if p <= limit {
				return -1
			}
			return 1
		})
		if can <= m {
			high = m
		} else {
			low = m + 1
		}
	}
	return low
}
