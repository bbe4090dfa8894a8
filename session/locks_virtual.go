//go:build linux

package session

import (
	"cmp"
	"slices"
	"time"

	"goprof/profile"
	"goprof/unwind"
	"goprof/vmstructs"
)

// Virtual threads without a carrier are read in the same rounds as other threads. No CPU clock shows whether such a
// thread ran between two rounds. Its frames in the heap show it: they refer to an object that the thread has made for
// this wait.

const (
	// findLimit bounds each search for such threads: there may be millions of them.
	findLimit = 3 * time.Second
	// walkedUnmounted bounds how many of them are shown with their stacks.
	walkedUnmounted = 1 << 10
)

// findUnmounted looks for waiting virtual threads. The next rounds read their locks.
func (r *lockReader) findUnmounted() {
	t := r.told
	c := r.d.VM.NewContinuations().ReadFrom(r.d.timed(cmp.Or(r.d.opt.Find, findLimit)))
	if c == nil {
		return
	}
	r.d.whileResting(r.k, r.proc, func() { t.Seen, t.Left, t.Err = r.k.FindVirtual(c) })
	c.ReadFrom(r.d.Process)
}

// confirmedUnmounted reports whether two rounds agree on what such a thread waits for.
func confirmedUnmounted(id uint64, last, now *lockRound) bool {
	was, ok := last.unmounted[id]
	return ok && last.settled && now.settled && was == now.unmounted[id]
}

// tellUnmounted adds virtual threads without a carrier to the dump, if two rounds agree on their waits or if others
// wait for them. A thread's stack is read later, and is shown only if the thread is still in the same state.
func (r *lockReader) tellUnmounted(last, now *lockRound) {
	if r.told == nil {
		return
	}
	var waits []unwind.UnmountedWait
	for id, t := range now.unmounted {
		switch was := last.unmounted[id]; {
		case t.Wants.How == 0:
		case confirmedUnmounted(id, last, now):
			waits = append(waits, unwind.UnmountedWait{ID: id, State: t.State, WaitsFor: r.wanted(&t.Wants)})
		case accuses(&t.Wants) && was.Wants == t.Wants && t.Wants.Kind != vmstructs.TaskResult:
			waits = append(waits, unwind.UnmountedWait{ID: id, State: t.State})
		}
	}
	shown := 0
	r.d.threads = unwind.AddUnmounted(r.d.threads, waits, func(t *profile.ThreadDump) {
		if shown++; shown <= walkedUnmounted {
			r.showUnmounted(t)
		}
	})
}

// showUnmounted adds name, state and stack.
func (r *lockReader) showUnmounted(t *profile.ThreadDump) {
	var stack profile.Stack
	if !r.k.VisitVirtual(t.Virtual.ID, func(v *vmstructs.VirtualThread) {
		t.Name, t.Virtual.Name = v.Name, v.Name
		if t.State != "" && t.State != v.State {
			return
		}
		if t.State = v.State; len(v.Stack.Chunks) > 0 && !r.d.opt.Bare {
			r.d.Walker.WalkContinuation(v.Stack, &stack)
			t.Stack = stack
			t.Stack.Frames = slices.Clone(stack.Frames)
		}
	}) {
		t.Err = "it ran while it was looked at"
	}
}
