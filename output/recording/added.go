package recording

import (
	"math"

	"goprof/output"
	"goprof/profile"
)

// added adds up what samples count before it hands them on. All code that reads a file sums its samples up, in some
// way, and a sum that does not fit into a number would come out as another number, or below zero. So the reading ends
// there. No recorder writes such a file: as ns, the largest number is 292 years.
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
