//go:build linux

package sampler

import "time"

// longGap is a delay of a tick. From longGap on, CPU time used meanwhile goes to no sample: goprof was stopped, or the
// whole machine was.
const longGap = int64(time.Second)

// forgiveUse forgives the CPU time that threads have used while nobody could look. That time is no credit for a burst
// of samples now, nor the weight of a single sample.
func (s *scan) forgiveUse() {
	pools := s.pools
	s.pools = false
	s.bills.read() // this comes first: what is used from now on is not forgiven
	for _, th := range s.byTID {
		credit, known := th.credit, max(th.last.Ran, th.billed) // a sample of perf may carry more than the last look
		stat, ok := s.charged(th)
		if !ok {
			s.forget(th)
			continue
		}
		s.updateAccount(th, stat)
		th.credit = credit
		if th.last.Ran > known && !th.hint.Skip {
			used := th.last.Ran - known
			th.billed += used
			s.bills.owed -= int64(used)
			s.bills.excused += int64(used)
		}
	}
	s.pools = pools
	s.givePoolUp() // the time of threads that have come and gone meanwhile, too
}
