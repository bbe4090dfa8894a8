package postmortem

import (
	"errors"

	"goprof/profile"
	"goprof/unwind"
	"goprof/vmstructs"
)

// ErrNoVirtual: the JVM has no virtual threads, or does not show where they are.
var ErrNoVirtual = errors.New("this JVM has no virtual threads that could be listed (they came with JDK 21)")

// A live JVM's locks are read in two rounds. For a core one round is enough, because no thread runs.

// HasVirtual reports whether the JVM may have virtual threads that can be listed.
func (j *JVM) HasVirtual() bool { return j.conts != nil }

// LocksKnown returns nil if the JVM shows its locks. Otherwise the error says what is missing.
func (j *JVM) LocksKnown() error {
	_, err := j.VM.NewLocks()
	return err
}

// keepFrames stores the positions of the Java frames of the stack that was just walked.
func (d *dump) keepFrames(t *coreThread, stack *profile.Stack) {
	if d.Walker.KeepInterpreted && t.java.StackSize > 0 {
		d.frames[t.java.Addr] = unwind.LockFrames(stack.Frames, d.Walker.InterpretedFrames(), t.java)
	}
}

// locks fills in the locks that the threads hold and wait for.
func (d *dump) locks() error {
	k, err := d.VM.NewLocks()
	if err != nil {
		return err
	}
	var java []vmstructs.Thread
	for i := range d.threads {
		if d.threads[i].java.Addr != 0 {
			java = append(java, d.threads[i].java)
		}
	}
	k.CollectorRests(true) // the collector moves nothing in a core, either
	all, settled := k.Round(java, d.frames)
	unmounted := d.conts != nil
	if unmounted {
		waits := &d.out.Waits
		if waits.Seen, waits.Left, waits.Err = k.FindVirtual(d.conts); waits.Err != nil {
			waits.Err = named(waits.Err, "the lists of them")
		}
		all, settled = k.Round(java, d.frames) // including monitors of virtual threads
	}
	for i := range all {
		n, ok := d.byAddr[all[i].Thread.Addr]
		if !ok {
			continue
		}
		out := &d.out.Threads[n]
		for _, h := range all[i].Holds {
			out.Holds = append(out.Holds, unwind.HeldLockOf(&h, &out.Stack))
		}
		out.WaitsFor, out.Unconfirmed = d.wants(&all[i].Wants, settled)
		if out.WaitsFor != nil {
			out.WaitsFor.Alone = unwind.WantsAlone(out.WaitsFor, &out.Stack)
		}
	}
	if unmounted {
		d.unmounted(k, settled)
	}
	return nil
}

// unmounted adds virtual threads without a carrier: those that wait, and those that others wait for.
func (d *dump) unmounted(k *vmstructs.Locks, settled bool) {
	var waits []unwind.UnmountedWait
	for _, v := range k.Unmounted() {
		if w, unconfirmed := d.wants(&v.Wants, settled); w != nil || unconfirmed {
			waits = append(waits, unwind.UnmountedWait{ID: v.ID, State: v.State, WaitsFor: w})
		}
	}
	var stack profile.Stack
	d.out.Threads = unwind.AddUnmounted(d.out.Threads, waits, func(t *profile.ThreadDump) {
		k.VisitVirtual(t.Virtual.ID, func(v *vmstructs.VirtualThread) {
			t.Name, t.Virtual.Name, t.State = v.Name, v.Name, v.State
			if len(v.Stack.Chunks) > 0 {
				d.Walker.WalkContinuation(v.Stack, &stack)
				d.keep(t, &stack)
			}
		})
	})
}

// wants returns the lock that a thread waits for. If a collector was moving objects, only monitors are certain.
func (d *dump) wants(w *vmstructs.Wanted, settled bool) (wanted *profile.WantedLock, unconfirmed bool) {
	switch {
	case w.How == 0:
		return nil, false
	case !settled && w.Monitor == 0:
		return nil, true
	}
	return &profile.WantedLock{Lock: unwind.LockOf(&w.Lock), How: profile.LockWait(w.How), Timed: w.Timed,
		Owner: d.ref(&w.Owner)}, false
}

// ref returns the thread of this dump that owns a lock. It is empty if the owner is not in the dump.
func (d *dump) ref(o *vmstructs.LockOwner) (ref profile.ThreadRef) {
	ref.Name, ref.Virtual = o.Name, o.Virtual
	if o.Thread == 0 {
		return ref
	}
	i, ok := d.byAddr[o.Thread]
	if !ok {
		return profile.ThreadRef{}
	}
	t := &d.out.Threads[i]
	ref.TID = t.TID
	if o.Virtual == 0 {
		ref.Name = t.Name
	} else if t.Stack.Virtual.ID == o.Virtual {
		ref.Name = t.Stack.Virtual.Name
	}
	return ref
}
