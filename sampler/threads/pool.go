//go:build linux

package threads

import "goprof/sampler/look"

// Threads that have used little are billed together. Most threads of a large pool are never sampled, or once. Some end
// before goprof has listed them, and no sample would carry what they used. So the samples of these threads together
// carry the CPU time of the whole process, except the time that belongs to the other threads. That is right on average:
// a thread is sampled in proportion to its CPU time.

// poolBelow is in samples' worth of CPU time. A thread that has used that much begins to have a bill of its own.
const poolBelow = 10

// One sample carries at most 1/poolShare of the pool, or two intervals if that is more: samples that are read together
// share the pool.
const poolShare = 8

// IsPooled reports whether a thread has no bill of its own.
func (s *List) IsPooled(th *Thread) bool { return s.upkeep.Pools && !th.Hint.Skip && !th.owner }

func (s *List) noteCharge(th *Thread, ran uint64, used int64) {
	b := &s.Bills
	if !s.IsPooled(th) {
		b.owed += used
		return
	}
	b.owed -= int64(ran) - used - int64(th.Billed) // from before the thread was in the pool
	b.pooled += used
	th.Billed = ran
	if th.Spent += used; th.Spent >= poolBelow*s.Interval {
		s.becomeOwner(th, used)
	}
}

// becomeOwner gives a thread a bill of its own. The bill begins with what the thread has just used, except for what the
// pool has given away.
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

// dropOwners takes threads off the list of owners that have ended. Their memory may serve other threads now.
func (s *List) dropOwners() {
	keep := s.owners[:0]
	for _, th := range s.owners {
		if th.TID != 0 && th.owner {
			keep = append(keep, th)
		}
	}
	s.owners = keep
}

// pool is the CPU time that the process has used, as far as no thread was billed for it or owes it.
func (b *bills) pool() int64 {
	return b.Now - b.Base - b.given - b.owed - b.left - b.skipped - b.Excused
}

// BillPooled bills a sample of a thread that has used little for all such threads.
func (s *List) BillPooled(th *Thread, snap *look.Look) {
	if !s.IsPooled(th) {
		return
	}
	s.askOwners()
	b := &s.Bills
	pool := b.pool()
	if s.skipping { // of threads that were not read it is not known whether they are to be skipped
		pool = min(pool, b.pooled)
	}
	pool = max(min(pool, max(2*s.Interval, pool/poolShare)), 0)
	snap.CPU += pool
	b.given += pool
	b.pooled = max(b.pooled-pool, 0)
}

// askOwners updates what the owners have used, if the budget permits. The pool is computed from that.
func (s *List) askOwners() {
	if s.Now-s.ownersAt < s.ownersCost*clockShare {
		return
	}
	began := s.OwnCPUTime()
	s.Bills.read() // this comes first: what owners use meanwhile makes the pool smaller, never greater
	s.dropOwners()
	for _, th := range s.owners {
		s.BringUpToDate(th)
	}
	s.ownersAt, s.ownersCost = s.Now, s.OwnCPUTime()-began
}

// GivePoolUp forgives what is left of the pool.
func (s *List) GivePoolUp() {
	if b := &s.Bills; s.upkeep.Pools {
		b.Excused += max(b.pool(), 0)
		b.pooled = 0
	}
}
