package diff

// spread is how the blocks of one recording differ.
type spread struct {
	runs int
	all  [levels]float64 // squares of the counts of all
	slow float64         // how much larger the variance is that long blocks tell, for the mean of all items; at least 1
}

// An item's variance is known best from short blocks, for there are many. They miss what lasts longer than a block.
// That shows as a larger variance between long blocks: for all items together (slow), and for this one, where the ratio
// is more than chance gives one item in ten or twenty (the quantiles of chi-squared over its degrees of freedom).
var slowLevels = []struct {
	level int
	ratio float64
}{{2, 1.5}, {3, 2}}

// fewSamples is the number of looks that an item needs to say something of blocks.
const fewSamples = 50

// newSpread measures how slow a recording's changes are by the items that have samples enough.
func newSpread(list []item, s Side, side *side, all [levels]float64) spread {
	sp := spread{runs: len(side.runs), all: all, slow: 1}
	if !side.timed {
		return sp
	}
	sum, n := 0.0, 0
	look := float64(side.total) / float64(side.looks)
	for i := range list {
		count := float64(list[i].sum[s])
		if min(count, float64(side.total)-count) < fewSamples*look {
			continue
		}
		v := sp.between(&list[i], s, count/float64(side.total))
		if v[0] > 0 {
			sum += (2*v[2] - v[1]) / v[0]
			n++
		}
	}
	if n > 0 {
		sp.slow = max(sum/float64(n), 1)
	}
	return sp
}

// between is the variance of an item's count that the blocks of each level tell.
func (sp *spread) between(i *item, s Side, share float64) (v [levels]float64) {
	for level := range levels {
		k, b := float64(sp.runs*blocks>>shifts[level]), &i.blocks[s][level]
		if k < 2 {
			continue
		}
		v[level] = max(k/(k-1)*(b.squares-2*share*b.withAll+share*share*sp.all[level]), 0)
	}
	return v
}

// long is what the variance tends to as blocks become longer: what the last doubling added is added once more, for that
// is what blocks of any length still miss, to first order (lugsail batch means; Vats and Flegal, Biometrika 2022).
func long(v [levels]float64, level int) float64 {
	return max(2*v[level]-v[level-1], v[level])
}

// variance is that of an item's count, and with how many degrees of freedom it is known.
func (sp *spread) variance(i *item, s Side, share float64) (v, df float64) {
	by := sp.between(i, s, share)
	v, df = by[0]*sp.slow, float64(sp.runs*blocks)-1
	for _, slow := range slowLevels {
		if of := long(by, slow.level); of > v && by[slow.level] > slow.ratio*by[0] {
			v, df = of, float64(sp.runs*blocks>>shifts[slow.level])-1
		}
	}
	return v, df
}
