package profile

import "math"

const (
	// LeastReadings is how many readings show how sure a slope is.
	LeastReadings = 3
	// sureGrowth is by how many of its errors a slope must lie above zero. Thousands of classes are asked, so 95 of 100
	// is not enough.
	sureGrowth = 2
	// upward is the part of the steps from reading to reading that must lead up.
	upward = 0.7
)

// Slope returns the slope of the line that fits the readings best, and the slope's error, which follows from how far
// the readings lie off the line. ok is false if all times are the same. xx, xy and yy are sums of products of times and
// bytes, each less its mean.
func Slope(readings int, xx, xy, yy float64) (s HeapSlope, ok bool) {
	if xx <= 0 {
		return s, false
	}
	s.Rate = xy / xx
	if free := float64(readings - 2); free > 0 {
		off := max(yy-s.Rate*xy, 0)
		s.Error = Z95(readings-1) * math.Sqrt(off/free/xx)
	}
	return s, true
}

// Z95 returns how many standard errors 95 of 100 true values are away at most, if there are many values. With few it is
// more (Student's t).
func Z95(values int) float64 {
	switch n := float64(values - 1); {
	case values < 2:
		return 12.7
	default:
		return 1.96 + 2.4/n + 8.3/(n*n*n)
	}
}

// Sure reports whether a slope leads up for certain.
func (s HeapSlope) Sure() bool { return s.Rate > sureGrowth*s.Error }

// Upward reports whether enough of the steps from reading to reading lead up to be a trend.
func Upward(ups, readings int) bool { return float64(ups) >= upward*float64(readings-1) }
