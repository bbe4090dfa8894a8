package diff

import (
	"cmp"
	"math"
	"sort"
)

// All samples of a path are also samples of its caller, and of its method. If a caller has few other samples, both are
// nearly the same hypothesis: if chance makes one significant, it mostly makes the other significant as well. So the
// sum of their probabilities is nearly twice too large. In a recursion of 20 levels it is nearly 20 times too large.
//
// Hunter's inequality corrects the sum: the probability that any of several events happens is at most the sum of their
// probabilities, less the probabilities that both events of a pair happen, for pairs that form no cycle (Hunter,
// Journal of Applied Probability 13, 1976; Worsley, Biometrika 69, 1982). So the correction uses the pairs that have
// most in common: a maximum spanning tree.

// pair is two items, by their indexes in the list. All samples of inner are samples of outer.
type pair struct{ inner, outer int32 }

// nested returns three kinds of pairs: a path and its caller, a path and its method, a method's self and its total.
func (it *items) nested() (pairs []pair) {
	keys := int32(len(it.names))
	add := func(inner, outer int32) {
		if a, b := it.place[inner], it.place[outer]; a >= 0 && b >= 0 {
			pairs = append(pairs, pair{a, b})
		}
	}
	for key := range keys {
		add(key, keys+key)
	}
	for n := int32(1); n < int32(len(it.keys)); n++ {
		add(2*keys+n, keys+it.keys[n])
		if parent := it.tree.nodes[n].parent; parent != 0 {
			add(2*keys+n, 2*keys+parent)
		}
	}
	return pairs
}

// questions are the hypotheses that are not rejected yet, by prints: items with the same samples are one hypothesis.
type questions struct {
	of    map[uint64]*evidence
	links map[uint64][]link
	sum   float64 // of the weights, less what pairs have in common
}

// link leads from one item to another. both is the probability that both are significant by chance, divided by the risk
// of one item with a weight of 1.
type link struct {
	to   uint64
	both float64
}

// newQuestions makes questions from the items that are hypotheses.
func newQuestions(order []*evidence, list []evidence, pairs []pair) *questions {
	q := questions{of: make(map[uint64]*evidence), links: make(map[uint64][]link)}
	for _, e := range order {
		if q.of[e.item.prints] == nil {
			q.of[e.item.prints] = e
			q.sum += e.weight
		}
	}
	q.join(q.inCommon(list, pairs))
	return &q
}

// common is two hypotheses, and what they have in common.
type common struct {
	a, b uint64
	both float64
}

// inCommon returns what pairs have in common, the largest first. It uses the smallest risk of any item: with a larger
// risk, two items have more in common.
func (q *questions) inCommon(list []evidence, pairs []pair) (all []common) {
	for _, p := range pairs {
		inner, outer := &list[p.inner], &list[p.outer]
		a, b := inner.item.prints, outer.item.prints
		if a == b || q.of[a] == nil || q.of[b] == nil {
			continue
		}
		risk := Risk / q.sum
		all = append(all, common{a, b, both(risk*inner.weight, risk*outer.weight, correlation(inner, outer)) / risk})
	}
	sort.Slice(all, func(i, j int) bool {
		x, y := &all[i], &all[j]
		return cmp.Or(cmp.Compare(y.both, x.both), cmp.Compare(x.a, y.a), cmp.Compare(x.b, y.b)) < 0
	})
	return all
}

// join links the pairs that have most in common, as long as the links form no cycle.
func (q *questions) join(all []common) {
	tree := make(map[uint64]uint64) // each hypothesis leads to another one of its tree, and finally to the root
	root := func(at uint64) uint64 {
		for next, ok := tree[at]; ok; next, ok = tree[at] {
			if far, ok := tree[next]; ok {
				tree[at] = far
			}
			at = next
		}
		return at
	}
	for _, c := range all {
		if a, b := root(c.a), root(c.b); a != b {
			tree[a] = b
			q.links[c.a] = append(q.links[c.a], link{c.b, c.both})
			q.links[c.b] = append(q.links[c.b], link{c.a, c.both})
			q.sum -= c.both
		}
	}
}

// reject removes a hypothesis, and what it has in common with others.
func (q *questions) reject(e *evidence) {
	delete(q.of, e.item.prints)
	q.sum -= e.weight
	for _, l := range q.links[e.item.prints] {
		if q.of[l.to] != nil {
			q.sum += l.both
		}
	}
}

// correlation returns the correlation of two shares, if all samples of inner are also samples of outer. For independent
// samples it follows from the shares alone. If samples depend on each other, both variances are larger, each by a
// factor. Then the covariance is assumed to be larger by the smaller of the two factors, because the larger factor may
// come from samples that only one share has.
func correlation(inner, outer *evidence) float64 {
	in, out := inner.pooled(), outer.pooled()
	if in >= out || out >= 1 {
		return 0 // their counts are not their numbers of samples
	}
	least, most := min(inner.inflation, outer.inflation), max(inner.inflation, outer.inflation)
	return math.Sqrt(in * (1 - out) / (out * (1 - in)) * least / most)
}

// both takes two correlated normal numbers. p and q are the probabilities that each alone is at least so far from 0.
// both returns the probability that both numbers are so far from 0, on the same side. The correlation is not negative.
// The result is an integral over the correlation (Plackett, Biometrika 1954).
func both(p, q, correlation float64) float64 {
	h, k := math.Sqrt2*math.Erfcinv(p), math.Sqrt2*math.Erfcinv(q)
	const steps = 64
	width := math.Asin(correlation) / steps
	sum := 0.0
	for i := range steps {
		sin, cos := math.Sincos((float64(i) + 0.5) * width)
		sum += math.Exp(-(h*h + k*k - 2*h*k*sin) / (2 * cos * cos))
	}
	return 2 * (p/2*q/2 + sum*width/(2*math.Pi))
}
