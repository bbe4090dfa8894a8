//go:build linux

package session

import (
	"runtime/metrics"

	"goprof/profile"
)

// MemoryGoal is the memory above which Go's garbage collector works harder (debug.SetMemoryLimit). The parts of a
// recording have limits of their own: profile.DefaultMaxNodes for the profile (23 MB, and 20 MB for names; with Sink
// and Full, fullNodes), sampler.Queue for snapshots, those of unwind and vmstructs for their caches, and mostAlive.
const MemoryGoal = 70 << 20

const (
	// fullNodes is the number of nodes at which a profile is handed to RecordOptions.Full. The profile takes 2 MB then,
	// and summing it up takes about twice as much.
	fullNodes = 1 << 16
	// mostAlive is how much of the heap may be alive before caches are emptied. The rest up to MemoryGoal is room for
	// garbage: with less room the collector would run all the time, and use most of goprof's CPU time.
	mostAlive = 48 << 20
	// leastLoaded is how many bytes the VM must read into its caches before they are emptied again. In memory they take
	// two or three times as much. The first walk of javac reads 4 MB.
	leastLoaded = 6 << 20
)

// handOverStacks hands the stacks to RecordOptions.Full, which sums them up, once there are many.
func (r *recording) handOverStacks() {
	if r.opt.Full == nil || r.opt.Threads || r.profile.Nodes() < max(fullNodes, r.kept) {
		return
	}
	r.releaseHeld()
	taken := r.profile.TakeStacks()
	r.manner.move(taken)
	r.kept = 2 * r.profile.Nodes() // so that stacks that stay are not moved each time
	r.opt.Full(taken)
}

// move finds places for kept looks in the new profile, after the stacks of the old one were taken.
func (w *wall) move(from *profile.Profile) {
	for _, st := range w.of {
		if st.lost != profile.Whole {
			continue
		}
		stack := from.StackAt(st.at, false, w.moved.Frames[:0])
		w.moved = stack
		st.at = w.profile.AddAt("", &stack, 0, 0)
		if st.readyLooks != 0 {
			st.ready = w.profile.Beside(st.at, w.frame(profile.Runnable, ""), profile.StateFrame)
		}
	}
}

// cacheBound notices that memory is short.
type cacheBound struct {
	sample []metrics.Sample
	from   uint64 // what the VM had loaded when the caches were last emptied
}

// boundCaches empties the caches of names and code if too much memory is in use. The caches' own bounds count entries,
// and are set for one large program. A program that compiles all the time fills each cache within an hour with entries
// that are no longer needed. Entries that are still needed are read again.
func (r *recording) boundCaches() {
	c, loaded := &r.caches, r.VM.Loaded()
	if !r.habits.forgets || loaded-c.from < leastLoaded || c.alive() < mostAlive {
		return
	}
	r.Walker.Forget()
	r.VM.Forget()
	c.from = loaded
}

// alive returns how much of the heap the last collection found alive.
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
