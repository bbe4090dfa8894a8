package profile

import "fmt"

// Quality is how far the shares of a recording can be believed, as far as its own account tells.
type Quality string

const (
	Good Quality = "good"
	Fair Quality = "fair" // what is missing could move shares by some percent
	Poor Quality = "poor" // by a tenth, or more
)

// What is missing may be of one kind, so a share may be off by as much as is missing. A share of CPU time that no
// sample carries is less of a doubt: most of it is of threads that had not used enough for a sample yet.
const (
	fairMissing, poorMissing       = 0.02, 0.10
	fairNotSampled, poorNotSampled = 0.15, 0.40
)

// Judge says how far the shares can be believed, and why not further.
func (s *Summary) Judge() (q Quality, why []string) {
	q = Good
	if s.Attempted == 0 {
		return q, nil // there are no shares
	}
	doubt := func(part, of int64, fair, poor float64, text string) {
		if part <= 0 || of <= 0 {
			return
		}
		share := float64(part) / float64(of)
		switch {
		case share >= poor:
			q = Poor
		case share < fair:
			return
		case q == Good:
			q = Fair
		}
		why = append(why, fmt.Sprintf("%.1f%% %s", 100*share, text))
	}
	doubt(s.Lost, s.Attempted, fairMissing, poorMissing, "of the looks are lost, whatever their threads did")
	doubt(s.Truncated, s.Samples, fairMissing, poorMissing, "of the stacks are cut: their callers are missing")
	doubt(s.Overflow, s.Samples, fairMissing, poorMissing, "of the samples have no callees: the profile is full")
	if s.Leans {
		if q == Good {
			q = Fair
		}
		why = append(why, "calls that block may have more samples than is true: goprof has no real-time priority (root, or "+
			"CAP_SYS_NICE) or may not use all CPUs of the program")
	}
	doubt(s.Asleep, s.Samples, fairMissing, poorMissing,
		"of the samples may stand in a call that had not begun when the thread was chosen")
	doubt(int64(s.Times.NotSampled+s.Times.Exited), int64(s.Times.Process), fairNotSampled, poorNotSampled,
		"of the CPU time has no sample")
	return q, why
}
