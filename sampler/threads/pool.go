//go:build linux

package threads

import "goprof/sampler/look"

// Threads that have used little are billed together, as a pool. Most threads of a large thread pool are never sampled,
// or once. Some end before goprof has listed them, and no sample would carry their CPU time. So the samples of all
// these threads together carry the CPU time of the process, except the time of threads with their own bills. This is
// right on average, because a thread is sampled in proportion to its CPU time.

// poolBelow is in samples' worth of CPU time. A thread that has used that much gets its own bill.
const poolBelow = 10

// poolShare: one sample carries at most 1/poolShare of the pool, or two intervals if that is more. Samples that are
// read together share the pool.
const poolShare = 8

// IsPooled reports whether a thread has no bill of its own.
func (s *List) IsPooled(th *Thread) bool { return s.upkeep.Pools && !th.Hint.Skip && !th.owner }

func (s *List) noteCharge(th *Thread, ran uint64, used int64) {
	b := &s.Bills
	if !s.IsPooled(th) {
		b.owed += used
		return
	}
	b.owed -= int64(ran) - used - int64(th.Billed) // its time from before it was in the pool
	b.pooled += used
	th.Billed = ran
	if th.Spent += used; th.Spent >= poolBelow*s.Interval {
		s.becomeOwner(th, used)
	}
}

// becomeOwner gives a thread a bill of its own. The bill begins with the time that the thread has just used, unless the
// pool has already given that time to samples.
func (s *List) becomeOwner(th *Thread, used int64) {
	b := &s.Bills
	b.read()
	mine := max(min(used, b.pool()), 0)
	th.owner = true
	th.Billed -= uint64(mine)
	b.owed += mine
	b.pooled = max(b.pooled-mine, 0)
	if len(s.owners) == cap(s.owners) {
		s.dropOwners()
	}
	s.owners = append(s.owners, th)
}

// dropOwners removes ended threads from the owners. Their memory may serve other threads by now.
func (s *List) dropOwners() {
	keep := s.owners[:0]
	for _, th := range s.owners {
		if th.TID != 0 && th.owner {
			keep = append(keep, th)
		}
	}
	s.owners = keep
}

// pool returns the CPU time of the process for which no thread was billed, and which no thread owes.
func (b *bills) pool() int64 {
	return b.Now - b.Base - b.given - b.owed - b.left - b.skipped - b.Excused
}

// BillPooled bills a sample of a pooled thread for the whole pool.
func (s *List) BillPooled(th *Thread, snap *look.Look) {
	if !s.IsPooled(th) {
		return
	}
	s.askOwners()
	b := &s.Bills
	pool := b.pool()
	if s.skipping { // threads that were not read may have to be skipped
		pool = min(pool, b.pooled)
	}
	pool = max(min(pool, max(2*s.Interval, pool/poolShare)), 0)
	snap.CPU += pool
	b.given += pool
	b.pooled = max(b.pooled-pool, 0)
}

// askOwners updates the owners' CPU time, if the budget permits. The size of the pool follows from that.
func (s *List) askOwners() {
	if s.Now-s.ownersAt < s.ownersCost*clockShare {
		return
	}
	began := s.OwnCPUTime()
	s.Bills.read() // first: what owners use meanwhile makes the pool smaller, never larger
	s.dropOwners()
	for _, th := range s.owners {
		s.BringUpToDate(th)
	}
	s.ownersAt, s.ownersCost = s.Now, s.OwnCPUTime()-began
}

// GivePoolUp forgives the rest of the pool.
func (s *List) GivePoolUp() {
	if b := &s.Bills; s.upkeep.Pools {
		b.Excused += max(b.pool(), 0)
		b.pooled = 0
	}
}
