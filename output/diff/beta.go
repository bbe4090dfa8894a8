package diff

import "math"

// beta returns the regularised incomplete beta function I_x(a, b), by its continued fraction (Lentz; Abramowitz and
// Stegun, 26.5.8).
func beta(x, a, b float64) float64 {
	switch {
	case x <= 0:
		return 0
	case x >= 1:
		return 1
	case x > (a+1)/(a+b+2):
		return 1 - beta(1-x, b, a)
	}
	ab, _ := math.Lgamma(a + b)
	la, _ := math.Lgamma(a)
	lb, _ := math.Lgamma(b)
	front := math.Exp(ab-la-lb+a*math.Log(x)+b*math.Log1p(-x)) / a
	const tiny = 1e-300
	c, d := 1.0, 1-(a+b)*x/(a+1)
	if math.Abs(d) < tiny {
		d = tiny
	}
	d = 1 / d
	sum := d
	for i := 1; i < 10_000; i++ {
		m := float64(i)
		for _, term := range [2]float64{
			m * (b - m) * x / ((a + 2*m - 1) * (a + 2*m)),
			-(a + m) * (a + b + m) * x / ((a + 2*m) * (a + 2*m + 1)),
		} {
			if d = 1 + term*d; math.Abs(d) < tiny {
				d = tiny
			}
			if c = 1 + term/c; math.Abs(c) < tiny {
				c = tiny
			}
			d = 1 / d
			sum *= c * d
		}
		if math.Abs(c*d-1) < 1e-12 {
			break
		}
	}
	return min(max(front*sum, 0), 1)
}

// student returns the probability that a t-distributed number is at least as far from 0 as t.
func student(t, df float64) float64 {
	if math.IsInf(df, 1) {
		return math.Erfc(math.Abs(t) / math.Sqrt2)
	}
	return beta(df/(df+t*t), df/2, 0.5)
}

// binomial returns the probability that n draws, each with probability q, give k or a result that is at most as likely.
// It is twice the smaller tail. n and k need not be whole numbers.
func binomial(k, n, q float64) float64 {
	upper := 1.0 // P(X >= k)
	if k > 0 {
		upper = beta(q, k, n-k+1)
	}
	lower := 1.0 // P(X <= k)
	if k < n {
		lower = beta(1-q, n-k, k+1)
	}
	return min(2*min(upper, lower), 1)
}
