package diff

import "time"

// A recording does not show changes that are slower than itself, for example because other programs on the machine
// start and end. So shares of two recordings of one JVM differ by more than the blocks of either recording show. Drift
// stands for this difference. It was measured in 39 recordings of one program on a busy machine, of some 5 s each. The
// variance of a share, divided by that of independent looks, grew with the length of the part that the share was taken
// from: 1.1 for a hundredth of a recording, 1.3 for a twentieth, 1.6 for a fifth, 2.0 for the whole
// (docs/evidence/diff.md).
const (
	// driftLogit is the standard deviation of the logit of a share of one recording by drift alone. The value 0.02 fits
	// the 39 recordings, which were made on a very busy machine (for four parts of the program, with 4 to 50 % of the
	// time). The value 0.015 fits recordings of 10 s whose variance was 0.9 to 1.3 times that of independent looks. With
	// 0.015 diff finds more changes, but reports a change for 3 in 100 pairs of the 39 recordings (docs/evidence/diff.md).
	driftLogit = 0.015
	// driftTime is the length of these recordings. In longer ones drift averages out.
	driftTime = 5 * time.Second
)

// drift returns the variance that drift gives an item's count. If a side has several recordings, drift is measured: see
// between.
func (c *Comparison) drift(e *evidence, s Side) float64 {
	side := &c.sides[s]
	if !side.timed || len(c.sides[Before].runs)+len(c.sides[After].runs) > int(sides) {
		return 0
	}
	p := e.pooled()
	count := driftLogit * p * (1 - p) * e.total[s]
	return count * count / max(side.span.Seconds()/driftTime.Seconds(), 1)
}
