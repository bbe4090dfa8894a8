//go:build linux

package threads

import "time"

// LongGap: if a tick is late by that much, goprof or the whole machine was stopped. CPU time that was used meanwhile
// goes to no sample.
const LongGap = int64(time.Second)

// ForgiveUse forgives the CPU time that threads have used while goprof could not look. Otherwise that time would cause
// a burst of samples, or become the weight of one sample.
func (s *List) ForgiveUse() {
	pools := s.upkeep.Pools
	s.upkeep.Pools = false
	s.Bills.read() // first: what is used from now on is not forgiven
	for _, th := range s.ByTID {
		credit, known := th.Credit, max(th.Last.Ran, th.Billed) // a sample of perf may carry more than the last look
		stat, ok := s.Charged(th)
		if !ok {
			s.forget(th)
			continue
		}
		s.UpdateAccount(th, stat)
		th.Credit = credit
		if th.Last.Ran > known && !th.Hint.Skip {
			used := th.Last.Ran - known
			th.Billed += used
			s.Bills.owed -= int64(used)
			s.Bills.Excused += int64(used)
		}
	}
	s.upkeep.Pools = pools
	s.GivePoolUp() // also the time of threads that came and went meanwhile
}
