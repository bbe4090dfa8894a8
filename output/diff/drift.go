package diff

import "time"

// No recording shows what changes more slowly than itself, such as other programs on the machine that come and go. So
// shares of two recordings of one JVM differ by more than the blocks of either show. In 39 recordings of one program
// beside other work, of some 5 s each, the variance of a share over that of independent looks grew with the time that
// the share was taken of: 1.1 for a hundredth of a recording, 1.3 for a twentieth, 1.6 for a fifth, 2.0 for the whole
// (docs/evidence/diff.md). Drift stands for this growth.
const (
	// driftLogit is the standard deviation of the logit of a share of one recording by drift alone. The value 0.02 fits
	// the 39 recordings, for four parts of the program that had 4 to 50 % of the time. They were made beside much other
	// work. The value 0.015 fits recordings of 10 s, which differed by 0.9 to 1.3 times the variance of independent
	// looks. With 0.015, more changes are found, but 3 in 100 pairs of the 39 recordings are called changed
	// (docs/evidence/diff.md).
	driftLogit = 0.015
	// driftTime is how long these recordings were. In longer ones it averages out.
	driftTime = 5 * time.Second
)

// drift is the variance that this gives an item's count. Several recordings of a side measure it: see between.
func (c *Comparison) drift(e *evidence, s Side) float64 {
	side := &c.sides[s]
	if !side.timed || len(c.sides[Before].runs)+len(c.sides[After].runs) > int(sides) {
		return 0
	}
	p := e.pooled()
	count := driftLogit * p * (1 - p) * e.total[s]
	return count * count / max(side.span.Seconds()/driftTime.Seconds(), 1)
}
