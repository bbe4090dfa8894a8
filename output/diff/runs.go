package diff

import (
	"math"
	"slices"
)

// Several recordings of a side show how recordings differ: the compiler decides differently in each start, and the
// program does different things at different times. A single recording cannot show that.
//
// The variance of an item's share is estimated from the recordings of both sides together. Few recordings give a bad
// estimate: with two on each side, a t test finds nothing at all after a correction for hundreds of comparisons. But
// there are hundreds of items. For each item diff computes the ratio of its variance between recordings to its noise
// within them. The distribution of all these ratios improves each estimate: an item's ratio is moved towards the middle
// of the distribution. If the items are alike, it is moved far; if they differ much, only a little (Smyth's moderated t
// test, limma; Statistical Applications in Genetics and Molecular Biology 3, 2004).

// between is what is known about an item's variance between recordings.
type between struct {
	df       float64        // 0: each side has one recording, so nothing is known
	variance float64        // of the share that one recording has
	assumed  bool           // variance is not measured: see assume
	within   float64        // the part of variance that noise within recordings explains
	runs     [sides]float64 // how many recordings of equal length a side amounts to
	error2   [sides]float64 // the final variances of both shares
	freedom  float64
}

// between computes an item's variance between recordings from this item alone.
func (c *Comparison) between(e *evidence, spreads *[sides]spread) (b between) {
	for s := range sides {
		side := &c.sides[s]
		squares := 0.0
		for i := range side.runs {
			squares += float64(side.runs[i].total) * float64(side.runs[i].total)
		}
		b.runs[s] = e.total[s] * e.total[s] / squares // effective number (Kish)
		b.within += e.variance[s] / (e.total[s] * e.total[s]) * b.runs[s] / float64(sides)
		if df := float64(len(side.runs) - 1); df > 0 {
			of := spreads[s].between(e.item, s, e.share(s))[wholeRuns] / (e.total[s] * e.total[s]) * b.runs[s]
			b.variance += df * of
			b.df += df
		}
	}
	if b.df > 0 {
		b.variance /= b.df
	}
	if c.tooFew() {
		b.assume(e)
	}
	return b
}

const (
	// fewRuns is the least number of recordings of different starts that a side needs to show how starts differ. If a
	// compiler has two choices, two starts may be equal by chance.
	fewRuns = 3
	// startLogit and startShare are the assumed difference between starts of one program if diff cannot measure it: the
	// standard deviation of the logit of a share, and that of the share. In the measured programs, most methods differ by
	// less (docs/evidence/diff.md). A method that is inlined in one start and not in the next may differ by more.
	startLogit = 0.2
	startShare = 0.02
)

// tooFew reports whether the recordings are, or may be, of several starts, but too few to show how starts differ.
func (c *Comparison) tooFew() bool {
	return c.starts() != OneJVM && min(len(c.sides[Before].runs), len(c.sides[After].runs)) < fewRuns
}

// assume sets the variance to the difference between starts of most programs. A second recording of a side does not
// reduce it: it may be of a start like the first one.
func (b *between) assume(e *evidence) {
	p := e.pooled()
	logit := startLogit * p * (1 - p)
	b.variance = max(b.variance, logit*logit+startShare*startShare+b.within)
	b.df, b.assumed, b.runs = math.Inf(1), true, [sides]float64{1, 1}
}

// settle finds the variances of both shares. They are at least as large as the noise within recordings.
func (b *between) settle(e *evidence, p *startPrior) {
	if b.df == 0 {
		return
	}
	v, df := b.variance, b.df
	if b.within > 0 && !b.assumed {
		expected := p.expected(e)
		v, df = p.draw(b.variance/b.within/expected, b.df)
		v *= b.within * expected
	}
	v = max(v, b.within)
	for s := range sides {
		b.error2[s] = v / b.runs[s]
	}
	b.freedom = df
}

// chance returns the probability that recordings of an unchanged program differ by at least as much. It is 0 if nothing
// is known.
func (b *between) chance(change float64) float64 {
	if b.df == 0 {
		return 0
	}
	return student(change/math.Sqrt(b.error2[Before]+b.error2[After]), b.freedom)
}

// startPrior is the ratio of the variance between recordings to the noise within them, over all items. Even if the
// logits of all items vary by the same amount, this ratio is larger for larger items: for a share p, noise is
// proportional to p(1-p), and the variance that a varying logit causes is proportional to (p(1-p))². So an item is
// compared with the expected ratio for its size.
type startPrior struct {
	prior         // of the measured ratio divided by the expected one
	logit float64 // variance of the logit between recordings, without noise
}

func newPrior(list []evidence) (p startPrior) {
	met := make(map[uint64]bool)
	var used []*evidence
	for i := range list {
		e := &list[i]
		b := &e.between
		if b.df == 0 || b.assumed || b.within <= 0 || b.variance <= 0 || met[e.item.prints] || e.fewest > fewEnough {
			continue
		}
		met[e.item.prints] = true
		used = append(used, e)
	}
	if len(used) == 0 {
		return p
	}
	p.logit = logitBetween(used)
	ratios := make([]float64, len(used))
	for i, e := range used {
		ratios[i] = e.between.variance / e.between.within / p.expected(e)
	}
	p.prior = fitPrior(ratios, used[0].between.df)
	return p
}

// expected returns the expected ratio, for this item, of the variance between recordings to the noise within them.
func (p *startPrior) expected(e *evidence) float64 { return 1 + p.logit*e.perLogit() }

// perLogit returns that ratio less 1, for a variance of the logit of 1.
func (e *evidence) perLogit() float64 {
	share := e.pooled()
	return share * share * (1 - share) * (1 - share) / e.between.within
}

// mostLogit bounds the variance of the logit between recordings.
const mostLogit = 10.0

// logitBetween returns the variance of the logit that fits all items best, by maximum likelihood: it searches for a
// zero of the derivative.
func logitBetween(list []*evidence) float64 {
	more := func(logit float64) bool {
		sum := 0.0
		for _, e := range list {
			per := e.perLogit()
			expected := 1 + logit*per
			sum += per * (e.between.variance/e.between.within - expected) / (expected * expected)
		}
		return sum > 0
	}
	if !more(0) {
		return 0
	}
	logit, _ := bisect(1e-12, mostLogit, 60, geometric, more)
	return logit
}

// fewEnough is the largest evidence.fewest of an item with enough samples for a measurement.
const fewEnough = 1e-6

// Starts is how much is known about the difference between starts of a JVM.
type Starts string

const (
	OneJVM     Starts = "one JVM"     // all recordings are of one JVM, so starts do not matter
	Measured   Starts = "measured"    // the sides have recordings of several starts, as far as is known
	NotKnown   Starts = "not known"   // the sides are of two starts, or two sets of files of one start each
	MaybeOther Starts = "maybe other" // it is not known whether they are of one start or two
)

func (c *Comparison) starts() Starts {
	var all []string
	known, several := true, false
	for s := range sides {
		var of []string
		for i := range c.sides[s].runs {
			jvm := c.sides[s].runs[i].jvm
			known = known && jvm != ""
			if jvm == "" || !slices.Contains(of, jvm) {
				of = append(of, jvm)
			}
			if !slices.Contains(all, jvm) {
				all = append(all, jvm)
			}
		}
		several = several || len(of) > 1
	}
	switch {
	case known && len(all) == 1:
		return OneJVM
	case several:
		return Measured
	case known:
		return NotKnown
	}
	return MaybeOther
}
