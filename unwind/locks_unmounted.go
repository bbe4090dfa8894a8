package unwind

import (
	"cmp"
	"slices"

	"goprof/profile"
)

type UnmountedWait struct {
	ID       uint64
	State    string
	WaitsFor *profile.WantedLock // nil: not confirmed
}

// AddUnmounted adds UnmountedWaits to a dump, and the unmounted virtual threads whose locks other threads wait for. If
// the dump does not have a thread yet, show adds its name, state and stack.
func AddUnmounted(threads []profile.ThreadDump, waits []UnmountedWait,
	show func(*profile.ThreadDump)) []profile.ThreadDump {
	first := len(threads)
	byTID, at := map[int]int{}, map[uint64]int{}
	for i := range threads {
		if v := threads[i].Virtual; v != nil {
			at[v.ID] = i
		} else {
			byTID[threads[i].TID] = i
		}
	}
	entry := func(id uint64, state string) *profile.ThreadDump {
		i, ok := at[id]
		if !ok {
			i = len(threads)
			at[id] = i
			threads = append(threads, profile.ThreadDump{State: state, Virtual: &profile.VirtualThread{ID: id}})
		}
		return &threads[i]
	}
	for _, w := range waits {
		t := entry(w.ID, w.State)
		t.WaitsFor, t.Unconfirmed = w.WaitsFor, w.WaitsFor == nil
	}
	for i := range len(threads) {
		switch w := threads[i].WaitsFor; {
		case w == nil:
		case w.Owner.TID == 0 && w.Owner.Virtual != 0:
			holdOnce(entry(w.Owner.Virtual, ""), w.Lock)
		case threads[i].Virtual != nil && w.Owner.TID != 0 && w.Kind != profile.Monitor:
			if owner, ok := byTID[w.Owner.TID]; ok { // perhaps no other thread waits for it
				holdOnce(&threads[owner], w.Lock)
			}
		}
	}
	for i := first; i < len(threads); i++ {
		show(&threads[i])
	}
	for i := range threads {
		t := &threads[i]
		if t.WaitsFor == nil {
			continue
		}
		if t.Virtual != nil {
			t.WaitsFor.Alone = WantsAlone(t.WaitsFor, &t.Stack)
		}
		if o := &t.WaitsFor.Owner; o.TID == 0 && o.Virtual != 0 {
			o.Name = cmp.Or(o.Name, threads[at[o.Virtual]].Name)
		}
	}
	profile.OrderVirtual(threads[first:])
	return threads
}

func holdOnce(t *profile.ThreadDump, l profile.Lock) {
	if l.Kind != profile.Task && !slices.ContainsFunc(t.Holds, func(h profile.HeldLock) bool { return h.ID == l.ID }) {
		t.Holds = append(t.Holds, profile.HeldLock{Lock: l, Frame: -1})
	}
}
