package diff

// spread is how the blocks of the recordings of one side differ.
type spread struct {
	runs int
	all  [levels]float64 // squares of the counts of all
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
