package diff

import "math"

// prior is the distribution of a ratio of variances over all items. An item's own ratio is inexact if there are few
// blocks or recordings, so it is drawn towards the prior (Smyth's moderated t test).
type prior struct {
	ratio float64
	df    float64 // the weight of ratio, in degrees of freedom; 0: nothing is known
}

const leastItems = 10

// fitPrior fits a distribution to the ratios of all items, which have df degrees of freedom each, by the moments of
// their logarithms. In an estimate, all other items together never weigh more than the item's own ratio. There are two
// reasons: items are not independent of each other, and the varying decisions of a compiler make distributions that no
// formula describes.
func fitPrior(ratios []float64, df float64) prior {
	if len(ratios) < leastItems {
		return prior{}
	}
	logs := make([]float64, len(ratios))
	for i, r := range ratios {
		logs[i] = math.Log(r) - digamma(df/2) + math.Log(df/2)
	}
	mean, spread := moments(logs)
	rest := spread - trigamma(df/2)
	if rest <= 0 {
		return prior{ratio: math.Exp(mean), df: df}
	}
	d0 := 2 * inverseTrigamma(rest)
	return prior{ratio: math.Exp(mean + digamma(d0/2) - math.Log(d0/2)), df: min(d0, df)}
}

// draw draws an item's ratio towards the prior.
func (p *prior) draw(ratio, df float64) (drawn, known float64) {
	if p.df == 0 {
		return ratio, df
	}
	return (p.df*p.ratio + df*ratio) / (p.df + df), p.df + df
}

func moments(list []float64) (mean, variance float64) {
	for _, x := range list {
		mean += x / float64(len(list))
	}
	for _, x := range list {
		variance += (x - mean) * (x - mean) / float64(len(list)-1)
	}
	return mean, variance
}

// digamma is the derivative of the logarithm of the gamma function (Abramowitz and Stegun, 6.3.5 and 6.3.18).
func digamma(x float64) (y float64) {
	for ; x < 10; x++ {
		y -= 1 / x
	}
	x2 := 1 / (x * x)
	return y + math.Log(x) - 1/(2*x) - x2*(1.0/12-x2*(1.0/120-x2/252))
}

// trigamma is the derivative of digamma (6.4.6 and 6.4.12).
func trigamma(x float64) (y float64) {
	for ; x < 10; x++ {
		y += 1 / (x * x)
	}
	x2 := 1 / (x * x)
	return y + 1/x + x2/2 + x2/x*(1.0/6-x2*(1.0/30-x2/42))
}

// inverseTrigamma returns the x with trigamma(x) = y, for y between 1e-4 and 1e4.
func inverseTrigamma(y float64) float64 {
	x, _ := bisect(1e-2, 1e4, 60, geometric, func(x float64) bool { return trigamma(x) > y })
	return x
}
