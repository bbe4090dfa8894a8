package diff

import "math"

// noise is how shares vary within the recordings of both sides.
type noise struct {
	spreads [sides]spread
	timed   bool            // some side has times, so the noise is measured
	slow    float64         // variance between long blocks over that between short ones, mean of all items; at least 1
	excess  float64         // the part of an item's variance beyond that of independent looks, mean of all items
	slowDF  float64         // degrees of freedom of an item's variance between long blocks
	missed  [levels]float64 // the factor that still longer blocks would add, mean of all items; at least 1
	items   float64         // number of different items with enough samples to measure noise
	prior   prior           // of the inflation between the shortest blocks
}

// measured holds, for each length of block (level), the variance of an item divided by that of independent looks, and
// the degrees of freedom of this ratio. It is for both sides together: each side has the weight that it has in the
// variance of the change. With few blocks, this combined value is more exact than that of either side.
type measured struct{ ratio, df [levels]float64 }

// Short blocks give the best estimate of an item's variance, because there are many. But they do not show phases that
// are longer than a block. Such phases make the variance between long blocks larger: that of all items together (slow),
// or that of one item, if its ratio is larger than chance explains. If all items together vary slowly, a single slow
// item is likely. Then a ratio that chance gives to one item in ten, or in twenty, is enough. Otherwise, chance alone
// would give such a ratio to some of many items, so the level of the test is corrected for the number of items.
var slowLevels = []struct {
	level  int
	chance float64
}{{2, 0.10}, {3, 0.05}}

// slowly is the least ratio of variances of long and short blocks, as the mean of all items, that counts as slow.
// Independent samples have less.
const slowly = 1.2

// rare is for a corrected level: it is the expected number of items in a comparison whose long blocks count by chance
// alone. That is one item in two comparisons.
const rare = 0.5

// level returns the probability that chance alone makes an item's own long blocks count.
func (n *noise) level(chance float64) float64 {
	if n.slow >= slowly || n.items == 0 {
		return chance
	}
	return min(chance, rare/n.items)
}

// fewSamples is the least number of looks that an item needs for a measurement by blocks.
const fewSamples = 50

// farMore shows that something lasts longer than a block: it is the least ratio of the variance between the longest
// blocks to that between the shortest, as the mean of all items.
const farMore = 1.5

// newNoise measures noise by the items with enough samples.
func newNoise(c *Comparison, it *items) noise {
	n := noise{slow: 1, missed: [levels]float64{1, 1, 1, 1, 1}}
	for s := range sides {
		n.spreads[s] = spread{runs: len(c.sides[s].runs), all: it.addBlocks(s, &c.sides[s])}
		n.timed = n.timed || c.sides[s].timed
	}
	if !n.timed {
		return n
	}
	met := make(map[uint64]bool)
	var ratios []float64
	var sums, df [levels]float64
	for i := range it.list {
		e := evidence{item: &it.list[i], total: [sides]float64{float64(c.sides[Before].total), float64(c.sides[After].total)}}
		if met[e.item.prints] || !c.enough(&e) {
			continue
		}
		met[e.item.prints] = true
		m := n.measure(c, &e)
		if m.ratio[0] > 0 {
			ratios = append(ratios, m.ratio[0])
			n.excess += 1 - 1/max(m.ratio[0], 1)
			for level, r := range m.ratio {
				sums[level] += r / m.ratio[0]
				df[level] = max(df[level], m.df[level])
			}
		}
	}
	n.prior, n.items = fitPrior(ratios, df[0]), float64(len(ratios))
	n.slowness(sums, df)
	return n
}

// slowness finds how much larger the variance of long blocks is, as the mean of all items. The longest blocks are few,
// so they count only if the difference is far larger than chance explains.
func (n *noise) slowness(sums, df [levels]float64) {
	if n.items == 0 {
		return
	}
	for level := range sums {
		sums[level] /= n.items
	}
	n.excess /= n.items
	n.slow, n.slowDF = max(long(sums, 2), 1), df[2]
	if sums[3] <= farMore {
		return
	}
	n.missed[2], n.missed[3] = missed(sums[3] / sums[2])
	if slow := sums[3] * n.missed[3]; slow > n.slow {
		n.slow, n.slowDF = slow, df[3]
	}
}

// enough reports whether there are enough looks with the item and without it, on each side that has times.
func (c *Comparison) enough(e *evidence) bool {
	for s := range sides {
		count := float64(e.item.sum[s])
		if c.sides[s].timed && min(count, e.total[s]-count) < fewSamples*c.look(s) {
			return false
		}
	}
	return true
}

// measure computes an item's variance from the blocks of the sides that have times.
func (n *noise) measure(c *Comparison, e *evidence) (m measured) {
	var sum, squares [levels]float64
	independent := 0.0
	for s := range sides {
		if !c.sides[s].timed {
			continue
		}
		scale := 1 / (e.total[s] * e.total[s])
		independent += c.independent(e, s) * scale
		for level, v := range n.spreads[s].between(e.item, s, e.share(s)) {
			if df := float64(n.spreads[s].runs*blocks>>shifts[level]) - 1; df > 0 {
				sum[level] += v * scale
				squares[level] += v * scale * v * scale / df
			}
		}
	}
	for level := range levels {
		if squares[level] > 0 {
			m.ratio[level] = sum[level] / independent
			m.df[level] = sum[level] * sum[level] / squares[level] // by Satterthwaite
		}
	}
	return m
}

// inflation returns an item's variance divided by that of independent looks, and the degrees of freedom of that ratio.
func (n *noise) inflation(c *Comparison, e *evidence) (ratio, df float64) {
	if !n.timed {
		return Assumed, math.Inf(1)
	}
	m := n.measure(c, e)
	if m.df[0] == 0 {
		return 1, float64(blocks - 1)
	}
	ratio, df = n.prior.draw(m.ratio[0], m.df[0])
	if slow := n.slowOf(ratio); slow > 1 { // the two factors have different degrees of freedom
		df = slow * slow / (1/df + (slow-1)*(slow-1)/n.slowDF) // by Satterthwaite
		ratio *= slow
	}
	for _, slow := range slowLevels {
		of, known := max(long(m.ratio, slow.level), m.ratio[slow.level]*n.missed[slow.level]), m.df[slow.level]
		if of > ratio && m.ratio[slow.level] > quantile(n.level(slow.chance), known)*m.ratio[0] {
			ratio, df = of, known
		}
	}
	return max(ratio, 1), df
}

// leastExcess is the smallest excess that an item's own excess is compared with.
const leastExcess = 0.2

// slowOf returns the factor by which long blocks show more variance, for an item with this inflation between short
// blocks. Blocks miss the correlation between samples before and after a block's end. If an item's samples are more
// correlated than those of others, its blocks miss more. No item is assumed to miss less: it may vary so slowly that
// short blocks do not show it.
func (n *noise) slowOf(ratio float64) float64 {
	own := 1 - 1/max(ratio, 1)
	return 1 + (n.slow-1)*max(own/max(n.excess, leastExcess), 1)
}

// quantile returns the value that chi-squared divided by its degrees of freedom exceeds with this probability (Wilson
// and Hilferty).
func quantile(chance, df float64) float64 {
	if df <= 0 {
		return math.Inf(1)
	}
	z := math.Sqrt2 * math.Erfinv(1-2*chance)
	of := 2 / (9 * df)
	return math.Pow(1-of+z*math.Sqrt(of), 3)
}
