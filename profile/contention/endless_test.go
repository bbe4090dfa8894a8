package contention

import (
	"testing"

	"goprof/profile"
)

// TestWaitsForItself: a reader that wants to write waits for itself. If an owner of another lock wants its lock again,
// it is not known whether another thread can release it.
func TestWaitsForItself(t *testing.T) {
	shared := profile.Lock{Kind: profile.Shared, ID: 7}
	for what, c := range map[string]struct {
		wants    profile.WantedLock
		deadlock bool
	}{
		"wants to write what it reads": {profile.WantedLock{Lock: shared, Alone: true}, true},
		"gives up in time":             {profile.WantedLock{Lock: shared, Alone: true, Timed: true}, false},
		"wants to read it again":       {profile.WantedLock{Lock: shared}, false},
		"wants what it owns":           {profile.WantedLock{Lock: profile.Lock{Kind: profile.Exclusive, ID: 7}}, false},
	} {
		threads := waiting([]int{0, 0}, never)
		c.wants.Owner = profile.ThreadRef{TID: 100}
		threads[0].WaitsFor = &c.wants
		g := New(threads)
		if (len(g.Deadlocks) == 1) != c.deadlock || c.deadlock && len(g.Deadlocks[0]) != 1 {
			t.Errorf("%s: deadlocks %v", what, g.Deadlocks)
		}
		if len(g.Chains) != 1 || g.Chains[0].Thread != 0 || g.Chains[0].Behind != 1 {
			t.Errorf("%s: chains %+v", what, g.Chains)
		}
	}
}

// TestReaderBehindWriter: thread 0 holds a read lock and waits for a monitor of thread 1. Thread 1 wants the same read
// lock and is in the queue after thread 2, a writer. That is a deadlock only if the writer never gives up.
func TestReaderBehindWriter(t *testing.T) {
	for what, c := range map[string]struct {
		writer      *profile.WantedLock
		unconfirmed bool
		alone       bool
		deadlock    bool
	}{
		"the writer waits for ever":        {writer: &profile.WantedLock{Alone: true}, deadlock: true},
		"the writer gives up in time":      {writer: &profile.WantedLock{Alone: true, Timed: true}},
		"another reader":                   {writer: &profile.WantedLock{}},
		"no writer is known":               {},
		"somebody waits, for what is open": {writer: &profile.WantedLock{Alone: true}, unconfirmed: true},
		"it is itself a writer": {
			writer: &profile.WantedLock{Alone: true, Timed: true}, alone: true, deadlock: true,
		},
	} {
		threads := waiting([]int{1, 0, -1, -1}, never)
		shared := profile.Lock{Kind: profile.Shared, ID: 7}
		threads[1].WaitsFor.Lock, threads[1].WaitsFor.Alone = shared, c.alone
		if c.writer != nil {
			c.writer.Lock, c.writer.Owner = shared, profile.ThreadRef{TID: 100}
			threads[2].WaitsFor = c.writer
		}
		threads[3].Unconfirmed = c.unconfirmed
		g := New(threads)
		if (len(g.Deadlocks) == 1) != c.deadlock {
			t.Errorf("%s: deadlocks %v", what, g.Deadlocks)
		}
		behind := 1
		if c.writer != nil {
			behind = 2
		}
		if !c.deadlock && (len(g.Chains) != 1 || g.Chains[0].Behind != behind) {
			t.Errorf("%s: %d chains", what, len(g.Chains))
		}
	}
}
