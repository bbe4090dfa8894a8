package profile

import "math"

const (
	// LeastReadings is the least number of readings that shows how certain a slope is.
	LeastReadings = 3
	// sureGrowth is by how many of its errors a slope must be above zero. Thousands of classes are tested, so 95 of 100 is
	// not enough.
	sureGrowth = 2
	// upward is the least part of the steps between readings that must go up.
	upward = 0.7
)

// Slope returns the slope of the line that fits the readings best, and the slope's error, which follows from the
// readings' distances from the line. ok is false if all times are the same. xx, xy and yy are sums of products of times
// and bytes, each less its mean.
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

// Z95 returns the number of standard errors within which 95 of 100 true values are. For few values it is larger
// (Student's t).
func Z95(values int) float64 {
	switch n := float64(values - 1); {
	case values < 2:
		return 12.7
	default:
		return 1.96 + 2.4/n + 8.3/(n*n*n)
	}
}

// Sure reports whether a slope certainly goes up.
func (s HeapSlope) Sure() bool { return s.Rate > sureGrowth*s.Error }

// Upward reports whether enough of the steps between readings go up to be a trend.
func Upward(ups, readings int) bool { return float64(ups) >= upward*float64(readings-1) }
