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

// Virtual threads that no carrier runs are read in the same rounds as other threads. No clock says that such a thread
// did not run between two rounds. Its frames say it: they lie in the heap, and hold what the thread made for this
// wait.

// VirtualWaits says of how many virtual threads without a carrier the waits were read.
type VirtualWaits struct {
	Seen int // virtual threads
	Left int // virtual threads that wait, too, and were left out: there are too many
	Err  error
}

const (
	// findLimit bounds how long such threads are looked for, each time: there may be millions of them.
	findLimit = 3 * time.Second
	// walkedUnmounted bounds how many of them are shown with their stacks.
	walkedUnmounted = 1 << 10
)

// findUnmounted looks for virtual threads that wait, for the rounds that follow.
func (r *lockReader) findUnmounted() {
	t := r.told
	c := r.d.VM.NewContinuations().ReadFrom(r.d.timed(findLimit))
	if c == nil {
		return
	}
	t.Seen, t.Left, t.Err = r.k.FindVirtual(c)
	c.ReadFrom(r.d.Process)
}

// confirmedUnmounted reports whether two rounds agree on what such a thread waits for.
func confirmedUnmounted(id uint64, last, now *lockRound) bool {
	was, ok := last.unmounted[id]
	return ok && last.settled && now.settled && was == now.unmounted[id]
}

// tellUnmounted adds virtual threads without a carrier to the dump: those whose waits two rounds agree on, and those
// that others wait for. Each is shown with the stack that it has a little later, if it waits for the same lock then.
func (r *lockReader) tellUnmounted(last, now *lockRound) {
	if r.told == nil {
		return
	}
	first := len(r.d.threads)
	at := map[uint64]int{} // by number
	entry := func(id uint64, state string) *profile.ThreadDump {
		i, ok := at[id]
		if !ok {
			i = len(r.d.threads)
			at[id] = i
			r.d.threads = append(r.d.threads, profile.ThreadDump{State: state, Virtual: &profile.VirtualThread{ID: id}})
		}
		return &r.d.threads[i]
	}
	for id, t := range now.unmounted {
		switch was := last.unmounted[id]; {
		case t.Wants.How == 0:
		case confirmedUnmounted(id, last, now):
			entry(id, t.State).WaitsFor = r.wanted(&t.Wants)
		case accuses(&t.Wants) && was.Wants == t.Wants:
			entry(id, t.State).Unconfirmed = true
		}
	}
	for i := range len(r.d.threads) {
		switch w := r.d.threads[i].WaitsFor; {
		case w == nil:
		case w.Owner.TID == 0 && w.Owner.Virtual != 0:
			holdOnce(entry(w.Owner.Virtual, ""), w.Lock)
		case i >= first && w.Owner.TID != 0 && (w.Kind == profile.Exclusive || w.Kind == profile.Shared):
			if owner, ok := r.d.byTID[w.Owner.TID]; ok { // for which no other thread waits, perhaps
				holdOnce(&r.d.threads[owner], w.Lock)
			}
		}
	}
	for i := first; i < len(r.d.threads); i++ {
		t := &r.d.threads[i]
		if i-first < walkedUnmounted {
			r.showUnmounted(t)
		}
		if t.WaitsFor != nil {
			t.WaitsFor.Alone = unwind.WantsAlone(t.WaitsFor, &t.Stack)
		}
	}
	for i := range r.d.threads {
		if w := r.d.threads[i].WaitsFor; w != nil && w.Owner.TID == 0 && w.Owner.Virtual != 0 {
			w.Owner.Name = cmp.Or(w.Owner.Name, r.d.threads[at[w.Owner.Virtual]].Name)
		}
	}
	slices.SortFunc(r.d.threads[first:], func(a, b profile.ThreadDump) int {
		return cmp.Compare(a.Virtual.ID, b.Virtual.ID)
	})
}

// holdOnce notes that a thread holds a lock.
func holdOnce(t *profile.ThreadDump, l profile.Lock) {
	if !slices.ContainsFunc(t.Holds, func(h profile.HeldLock) bool { return h.ID == l.ID }) {
		t.Holds = append(t.Holds, profile.HeldLock{Lock: l, Frame: -1})
	}
}

// showUnmounted adds name, state and stack.
func (r *lockReader) showUnmounted(t *profile.ThreadDump) {
	var stack profile.Stack
	if !r.k.VisitVirtual(t.Virtual.ID, func(v *vmstructs.VirtualThread) {
		t.Name, t.Virtual.Name = v.Name, v.Name
		if t.State != "" && t.State != v.State {
			return
		}
		if t.State = v.State; len(v.Stack.Chunks) > 0 {
			r.d.Walker.WalkContinuation(v.Stack, &stack)
			t.Stack = stack
			t.Stack.Frames = slices.Clone(stack.Frames)
		}
	}) {
		t.Err = "it ran while it was looked at"
	}
}
