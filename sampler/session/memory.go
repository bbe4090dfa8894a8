//go:build linux

package session

import (
	"runtime/metrics"

	"goprof/profile"
)

// MemoryGoal is what a recording's garbage collector should work harder not to exceed. What a recording keeps is
// bounded by its own limits: the profile by profile.DefaultMaxNodes (23 MB, and 20 for names; with Sink and Full by
// fullNodes), snapshots by sampler.Queue, and the caches of unwind and vmstructs by theirs, and by mostAlive.
const MemoryGoal = 70 << 20

const (
	// fullNodes is how many nodes a profile has when it is handed to RecordOptions.Full. It takes 2 MB then, and
	// summing it up about twice as much.
	fullNodes = 1 << 16
	// mostAlive is how much of the heap may be alive before caches are emptied. What is left up to MemoryGoal is room
	// for garbage: with less of it the collector runs all the time, for most of goprof's CPU time.
	mostAlive = 48 << 20
	// leastLoaded is how much the VM reads into its caches, at least, before they are emptied again: made into what
	// walks use, it is two or three times as much. The first walk of javac brings in 4 MB.
	leastLoaded = 6 << 20
)

// handOverStacks gives the stacks to who only wants sums of them, where they have become many.
func (r *recording) handOverStacks() {
	if r.opt.Full == nil || r.opt.Threads || r.profile.Nodes() < max(fullNodes, r.kept) {
		return
	}
	taken := r.profile.TakeStacks()
	r.standings.move(taken, r.profile)
	r.kept = 2 * r.profile.Nodes() // so that what stays is not moved all the time
	r.opt.Full(taken)
}

// move finds places for looks that go on, in a profile whose stacks were taken.
func (s *standings) move(from, to *profile.Profile) {
	for _, st := range s.of {
		if st.lost != profile.Whole {
			continue
		}
		stack := from.StackAt(st.at, false, s.moved.Frames[:0])
		s.moved = stack
		st.at = to.AddAt("", &stack, 0, 0)
		if st.readyLooks != 0 {
			st.ready = to.Beside(st.at, s.frame(profile.Runnable, ""), profile.StateFrame)
		}
	}
}

// cacheBound notices that memory is short.
type cacheBound struct {
	sample []metrics.Sample
	from   uint64 // what the VM had loaded when the caches were emptied last
}

// boundCaches empties the caches of names and code where too much memory is in use. Their own bounds count entries, and
// are made for one large program; an hour in which a program compiles all the time fills each of them with what nobody
// asks for any more. What is still needed is read again.
func (r *recording) boundCaches() {
	c, loaded := &r.caches, r.VM.Loaded()
	if r.opt.Lean || loaded-c.from < leastLoaded || c.alive() < mostAlive {
		return // Lean: one of many in this process
	}
	r.Walker.Forget()
	r.VM.Forget()
	c.from = loaded
}

// alive is how much of the heap the last collection found in use.
func (c *cacheBound) alive() uint64 {
	if c.sample == nil {
		c.sample = []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	}
	metrics.Read(c.sample)
	if c.sample[0].Value.Kind() != metrics.KindUint64 {
		return 0
	}
	return c.sample[0].Value.Uint64()
}
