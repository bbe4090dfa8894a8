package triage

import (
	"fmt"
	"slices"

	"goprof/profile"
	"goprof/profile/contention"
)

// Threads that wait for each other in a ring wait for ever. A single dump could be wrong, because its threads are read
// one after the other. So the same ring must be in every dump.
func deadlock(x *exam) *suspicion {
	dumps := x.dumpsWithLocks()
	if len(dumps) < 2 {
		return x.cannotTell("what threads hold and wait for could not be read twice")
	}
	found := rings(dumps[0])
	for _, d := range dumps[1:] {
		again := rings(d)
		found = slices.DeleteFunc(found, func(r ring) bool {
			return !slices.ContainsFunc(again, func(s ring) bool { return slices.Equal(r.keys(), s.keys()) })
		})
	}
	if len(found) == 0 {
		for _, d := range dumps {
			if why := d.Waits.Unread(); why != "" {
				return x.cannotTell(why)
			}
		}
		if n := ownerless(dumps); n > 0 {
			return x.cannotTell(fmt.Sprintf("which thread has the locks that %s for is not known", whoWait(n)))
		}
		if n := unconfirmedInAll(dumps); n > 0 {
			return x.cannotTell(fmt.Sprintf("no dump could confirm whose locks %s for",
				whoWait(n)))
		}
		return nil
	}
	in := 0
	for _, r := range found {
		in += len(r)
	}
	s := &suspicion{sure: 1, severity: profile.Critical,
		claim: fmt.Sprintf("%d threads wait for each other, for ever: a deadlock.", in),
		next:  fmt.Sprintf("goprof locks --pid %d  (all of their locks, and who waits behind them)", x.PID)}
	if in == 1 {
		s.claim = "A thread waits for itself, for ever: a deadlock."
	}
	if len(found) > 1 {
		s.claim = fmt.Sprintf("%d threads wait for each other, for ever: %d deadlocks.", in, len(found))
	}
	s.evidence = append(s.evidence, x.allInRings(dumps[len(dumps)-1], found)...)
	return s
}

// unconfirmedInAll counts the threads that may be in an unknown deadlock: each waits in all dumps, and in at least one
// dump the lock could not be confirmed.
func unconfirmedInAll(dumps []*Dump) (n int) {
	in, open := map[key]int{}, map[key]bool{}
	for _, d := range dumps {
		for i := range d.Threads {
			t := &d.Threads[i]
			if t.Unconfirmed || t.WaitsFor != nil && t.WaitsFor.OfAnother() && !t.WaitsFor.Timed {
				in[keyOf(t)]++
				open[keyOf(t)] = open[keyOf(t)] || t.Unconfirmed
			}
		}
	}
	for k, often := range in {
		if often == len(dumps) && open[k] {
			n++
		}
	}
	return n
}

// ownerless counts the threads that wait in all dumps for a lock with one owner, where no dump shows the owner. Such a
// thread may be in a deadlock.
func ownerless(dumps []*Dump) (n int) {
	in := map[key]int{}
	for _, d := range dumps {
		for i := range d.Threads {
			if w := d.Threads[i].WaitsFor; w != nil && w.Ownerless() {
				in[keyOf(&d.Threads[i])]++
			}
		}
	}
	for _, often := range in {
		if often == len(dumps) {
			n++
		}
	}
	return n
}

func whoWait(n int) string {
	if n == 1 {
		return "1 thread waits"
	}
	return fmt.Sprintf("%d threads wait", n)
}

func (x *exam) dumpsWithLocks() (dumps []*Dump) {
	for i := range x.Dumps {
		if x.Dumps[i].Locks {
			dumps = append(dumps, &x.Dumps[i])
		}
	}
	return dumps
}

// key identifies a thread of a dump. Virtual threads without a carrier have no tid.
type key struct {
	tid     int
	virtual uint64
}

func keyOf(t *profile.ThreadDump) key {
	if t.Virtual != nil {
		return key{virtual: t.Virtual.ID}
	}
	if t.Stack.Mounted && t.Stack.Virtual.ID != 0 {
		return key{virtual: t.Stack.Virtual.ID}
	}
	return key{tid: t.TID}
}

// ring is a list of threads in which each waits for the next, and the last for the first. It begins with the thread
// that comes first in the dump. Dumps are ordered by tid.
type ring []*profile.ThreadDump

func (r ring) keys() (keys []key) {
	for _, t := range r {
		keys = append(keys, keyOf(t))
	}
	return keys
}

func rings(d *Dump) (found []ring) {
	for _, cycle := range contention.New(d.Threads).Deadlocks {
		var r ring
		for _, i := range cycle {
			r = append(r, &d.Threads[i])
		}
		found = append(found, r)
	}
	return found
}

const maxRingLines = 10

func (x *exam) allInRings(d *Dump, found []ring) (lines []string) {
	for _, r := range found {
		for _, k := range r.keys() {
			for i := range d.Threads {
				if t := &d.Threads[i]; keyOf(t) == k && t.WaitsFor != nil {
					lines = append(lines, waitText(t))
				}
			}
		}
	}
	if len(lines) > maxRingLines {
		lines = append(lines[:maxRingLines], fmt.Sprintf("and %d more", len(lines)-maxRingLines))
	}
	return lines
}

// waitText describes a thread's wait: the thread, the lock, its owner, and the place.
func waitText(t *profile.ThreadDump) string {
	return fmt.Sprintf("%s waits for %s, in %s", t.Ref(), t.WaitsFor.Text(), topJava(&t.Stack))
}
