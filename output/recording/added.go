package recording

import (
	"math"

	"goprof/output"
	"goprof/profile"
)

// added adds up the weights of samples before it passes the samples on, because every caller adds samples up. If a sum
// would overflow, it ends the reading with an error. No recorder writes such a file: in ns, the largest number is 292
// years.
func added(visit func(*profile.Sample) error) func(*profile.Sample) error {
	var sums [4]int64
	return func(s *profile.Sample) error {
		for i, n := range [...]int64{s.Looks(), int64(s.CPU), int64(s.Span), s.Bytes} {
			if n < 0 {
				return &output.BadFile{Problem: "a sample counts less than nothing"}
			}
			if n > math.MaxInt64-sums[i] {
				return &output.BadFile{Problem: tooLarge, TooMuch: true}
			}
			sums[i] += n
		}
		return visit(s)
	}
}

const tooLarge = "the counts are too large together"
