package sampler

import (
	"runtime"
	"sync"
	"testing"
	"time"

	"goprof/sampler/look"
)

// The looks that wait for their walk are bounded in number and in bytes. A look that comes back is used again.
func TestQueueIsBounded(t *testing.T) {
	q := NewQueue(64)
	first := q.Take()
	q.Done(first)
	if again := q.Take(); again != first {
		t.Error("another snapshot than the one that was given back last")
	}
	q.Done(first)
	q.Done(new(look.Look)) // this look is not the queue's
	var held []*look.Look
	for s := q.Take(); s != nil; s = q.Take() {
		s.Stack = make([]byte, 1<<20)
		q.Put(s)
		held = append(held, <-q.Looks())
	}
	if len(held) != mostBytes>>20 {
		t.Errorf("%d MB wait", len(held))
	}
	for _, s := range held {
		s.Stack = make([]byte, 2<<20) // this stack has grown too large to be kept
		q.Done(s)
	}
	n := 0
	for s := q.Take(); s != nil; s = q.Take() {
		if n++; cap(s.Stack) > keptStack {
			t.Error("a free snapshot keeps a large buffer")
		}
	}
	if n != 64 {
		t.Errorf("%d of 64 are free again", n)
	}
}

// Looks that are kept are handed over together, in their order: when the first one would wait too long, or when they
// are many. What is kept counts as under way.
func TestQueueKeepsLooks(t *testing.T) {
	const began, others = 1_000_000_000_000, 4 // long after the run began
	q := NewQueue(others * keptPart)
	keep := func(when int64) *look.Look {
		s := q.Take()
		s.When, s.Stack = when, make([]byte, 100)
		q.Keep(s)
		return s
	}
	first, second := keep(began), keep(began+1)
	q.HandOverBefore(began + KeptFor - 1)
	if len(q.Looks()) > 0 {
		t.Error("the looks did not wait for others")
	}
	if n := q.queued.Load(); n != 200 {
		t.Errorf("%d bytes are under way, not 200", n)
	}
	q.HandOverBefore(began + KeptFor)
	if len(q.Looks()) != 2 || <-q.Looks() != first || <-q.Looks() != second {
		t.Error("the looks were not handed over in their order")
	}
	q.Hurry(began)
	if keep(began); q.HandOverAt() != began+KeptInHurry {
		t.Error("the look does not hurry")
	}
	q.HandOverBefore(began + KeptInHurry)
	<-q.Looks()
	q.Hurry(began - hurryFor)
	for range others - 1 {
		keep(began)
	}
	if q.HandOverAt() != began+KeptFor {
		t.Error("the hurry has no end")
	}
	if len(q.Looks()) > 0 {
		t.Error("too few looks were handed over")
	}
	keep(began)
	if len(q.Looks()) != others || len(q.kept) > 0 {
		t.Errorf("%d looks were handed over, not %d", len(q.Looks()), others)
	}
}

// What waits is lost if the process ends, so a run that has just begun has looks wait for a part of its time.
func TestQueueOfShortRun(t *testing.T) {
	const began = int64(1_000_000_000)
	q := NewQueue(1)
	q.Begin(began)
	for passed, want := range map[time.Duration]time.Duration{0: 10 * time.Millisecond, time.Second: 50 * time.Millisecond,
		time.Minute: 250 * time.Millisecond} {
		if got := time.Duration(q.Wait(began + int64(passed))); got != want {
			t.Errorf("%v after %v, not %v", got, passed, want)
		}
	}
	q.beLean()
	if got := q.Wait(began); got != KeptForLean {
		t.Errorf("a lean run has looks wait %v", time.Duration(got))
	}
}

// No two parties have the same look at a time.
func TestQueueFromTwoSides(t *testing.T) {
	q := NewQueue(8)
	var all sync.WaitGroup
	all.Go(func() {
		for s := range q.Looks() {
			if s.TID != 1 {
				t.Errorf("it is at %d", s.TID)
			}
			s.TID = 0
			q.Done(s)
		}
	})
	for n := 0; n < 50_000; {
		s := q.Take()
		if s == nil {
			runtime.Gosched()
			continue
		}
		if s.TID != 0 {
			t.Fatalf("it is at %d", s.TID)
		}
		s.TID = 1
		if n%3 == 0 { // the look has failed
			s.TID = 0
			q.Done(s)
		} else {
			q.Put(s)
		}
		n++
	}
	close(q.full)
	all.Wait()
}

// TestQueuesOfOneStock: queues make no snapshots if they have a stock. An empty one costs a sample, and no place in the
// queue.
func TestQueuesOfOneStock(t *testing.T) {
	var stock Stock
	stock.Fill()
	var queues [stocked / 8]*Queue
	for i := range queues {
		queues[i] = NewQueue(64)
		queues[i].TakeFrom(&stock)
	}
	given := map[*look.Look]bool{}
	for _, q := range queues {
		for range 8 {
			given[q.Take()] = true
		}
	}
	if q := queues[0]; len(given) != stocked || given[nil] || q.Take() != nil || q.Take() != nil {
		t.Fatalf("%d snapshots", len(given))
	}
	stock.Fill()
	for _, q := range queues {
		for range 8 {
			snap := q.Take()
			if snap == nil || given[snap] || q.slots[snap.Slot].snap != snap {
				t.Fatalf("%v", snap)
			}
			given[snap] = true
			q.Put(snap)
			q.Done(<-q.Looks())
			if again := q.Take(); again != snap {
				t.Fatal("what was given back is not used again")
			}
		}
	}
}
