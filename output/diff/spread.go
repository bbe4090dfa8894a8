package diff

import "math"

// spread is how the blocks of one side's recordings differ.
type spread struct {
	runs int
	all  [levels]float64 // squares of the counts of all items
}

// between returns the variance of an item's count between the blocks of each level. It is 0 if there are too few
// blocks.
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

// long extrapolates the variance to blocks of any length. It adds once more what the last doubling of the length added:
// to first order, blocks of any length miss as much (lugsail batch means; Vats and Flegal, Biometrika 2022).
func long(v [levels]float64, level int) float64 {
	return max(2*v[level]-v[level-1], v[level])
}

// mostMissed bounds the assumed length of a state of the program, in blocks of the longest level.
const mostMissed = 2.0

// missed corrects for variance that blocks do not show. growth is the variance between the longest blocks divided by
// that between blocks of half their length. missed returns two factors of the variance of the whole recording: half is
// its ratio to the variance that blocks of half the length show, and whole is its ratio to the variance that the
// longest blocks show. It assumes that the program's states last for exponentially distributed times, x blocks on
// average. Then blocks show 1-x(1-exp(-1/x)) of the variance. For small x the function long gives the same result. If
// states last about as long as a block, long gives too little.
func missed(growth float64) (half, whole float64) {
	told := func(x float64) float64 { return 1 - x*(1-math.Exp(-1/x)) }
	x, _ := bisect(1e-3, mostMissed, 40, middle, func(x float64) bool { return told(x)/told(2*x) < growth })
	return 1 / told(2*x), 1 / told(x)
}
