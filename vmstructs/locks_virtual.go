package vmstructs

import (
	"encoding/binary"
	"hash/fnv"
	"maps"
	"slices"

	"goprof/process"
)

// Virtual threads without a carrier are Java objects in lists of the JDK (containers.go). If such a thread waits for a
// lock of java.util.concurrent, its field Thread.parkBlocker refers to the lock, as for all threads.
//
// Since 24, a virtual thread that waits for a monitor gives up its carrier. An injected field of VirtualThread then
// refers to an ObjectWaiter (runtime/objectMonitor.hpp), whose layout is not exported. In the ObjectWaiter, goprof
// looks for a handle that leads back to the thread, followed by a monitor whose object has that monitor.

const (
	maxVirtualFound = 1 << 16 // virtual threads that are remembered, by their numbers
	maxVirtualWaits = 1 << 12 // virtual threads whose waits are read in each round
	waiterBytes     = 64      // bytes of an ObjectWaiter
)

// UnmountedLocks is the result of one round for a virtual thread without a carrier.
type UnmountedLocks struct {
	ID    uint64
	State string
	Wants Wanted
	// Frames is a hash of all its frames and their addresses. If two rounds have the same hash, the thread has most likely
	// not run in between, because it rebuilds the frames of a wait each time.
	Frames uint64
}

// unmounted has the facts that Locks keeps about virtual threads.
type unmounted struct {
	search  *search
	objects map[uint64]uint64 // the addresses of the VirtualThreads, by their numbers
	waiting []uint64          // the numbers of those that wait for something
	left    int               // the number of further threads that wait
	waiters []rawField        // fields of a VirtualThread that may lead to its ObjectWaiter; nil: not searched yet
	locked  map[uint64]uint64 // objects that such threads have locked, and the threads' numbers; nil: not read yet
	now     []UnmountedLocks  // the results of the last round
}

// FindVirtual finds the waiting virtual threads that have no carrier. If there are too many, those that wait for
// another thread's lock come first. Each later Round reads their waits. Call FindVirtual after a Round, and again after
// a Round that was not settled, because then the collector has moved these threads. FindVirtual and all later Rounds
// use c; do not use it for anything else. left counts the waiting threads beyond those that a Round reads. err says why
// some may be missing.
func (k *Locks) FindVirtual(c *Continuations) (seen, left int, err error) {
	u := &k.unmounted
	*u = unmounted{objects: map[uint64]uint64{}, waiters: u.waiters}
	if err := c.prepare(); err != nil {
		return 0, 0, err
	}
	c.CollectorRests(k.rests)
	platform := make([]Thread, 0, len(k.threads))
	for i := range k.threads {
		platform = append(platform, k.threads[i].Thread)
	}
	s := &search{c: c, light: true, seen: map[uint64]bool{}, shown: map[uint64]bool{}}
	var idle []uint64 // those that do not wait for another thread's lock
	s.visit = func(v *VirtualThread) {
		if v.Err != nil || v.Mounted || v.ID == 0 {
			return
		}
		w := k.wantsUnmounted(v.object, v.State)
		into := &idle
		if w.How != WaitToNotify && w.Kind != UnownableLock {
			into = &u.waiting
		}
		switch full := len(*into) >= maxVirtualWaits; {
		case w.How == 0:
			if len(u.objects) < maxVirtualFound {
				u.objects[v.ID] = v.object
			}
		case full:
			u.left++
		default:
			u.objects[v.ID] = v.object
			*into = append(*into, v.ID)
		}
	}
	if err = s.run(platform); err == nil {
		err = s.census.incomplete()
	}
	room := min(len(idle), maxVirtualWaits-len(u.waiting))
	u.waiting, u.left = append(u.waiting, idle[:room]...), u.left+len(idle)-room
	s.light, u.search = false, s // later looks need the numbers of the states in it
	return s.census.Seen, u.left, err
}

// Unmounted returns the facts that the last round has read about virtual threads without a carrier.
func (k *Locks) Unmounted() []UnmountedLocks { return k.unmounted.now }

// VisitVirtual visits one virtual thread that FindVirtual has found, with its frames. It returns false if the thread no
// longer exists, or if it has a carrier.
func (k *Locks) VisitVirtual(id uint64, visit func(*VirtualThread)) bool {
	t, ok := k.lookAtVirtual(id)
	if ok {
		t.Stack = &k.unmounted.search.c.heap
		visit(&t)
	}
	return ok
}

func (k *Locks) lookAtVirtual(id uint64) (t VirtualThread, ok bool) {
	u := &k.unmounted
	at := u.objects[id]
	if at == 0 || u.search == nil {
		return t, false
	}
	t = u.search.readThread(at)
	return t, t.Err == nil && t.ID == id && !t.Mounted
}

// readUnmounted reads the waits of the virtual threads that FindVirtual has found.
func (k *Locks) readUnmounted() {
	u := &k.unmounted
	u.now = u.now[:0]
	for _, id := range u.waiting {
		t, ok := k.lookAtVirtual(id)
		if !ok {
			continue
		}
		frames := framesHash(&u.search.c.heap) // before the search reads the next thread
		u.now = append(u.now, UnmountedLocks{ID: id, State: t.State, Wants: k.wantsUnmounted(t.object, t.State),
			Frames: frames})
		k.computedBy(&u.now[len(u.now)-1].Wants)
	}
}

func framesHash(c *process.Continuation) uint64 {
	h := fnv.New64a()
	for i := range c.Chunks {
		var b [8]byte
		binary.LittleEndian.PutUint64(b[:], c.Chunks[i].SP)
		h.Write(b[:])
		h.Write(c.Chunks[i].Stack)
	}
	return h.Sum64()
}

// lockedUnmounted finds the owner of a monitor among at most maxVirtualWaits of the virtual threads that FindVirtual
// has found. The waiting ones come first, so that all rounds read the same threads. The LockStack of such a thread is
// in its last chunk.
func (k *Locks) lockedUnmounted(object uint64) LockOwner {
	u := &k.unmounted
	if u.search == nil {
		return LockOwner{}
	}
	if u.locked == nil {
		u.locked = map[uint64]uint64{}
		others := maps.Clone(u.objects)
		for _, id := range u.waiting {
			delete(others, id)
		}
		ids := append(slices.Clone(u.waiting), slices.Sorted(maps.Keys(others))...)
		for _, id := range ids[:min(len(ids), maxVirtualWaits)] {
			if _, ok := k.lookAtVirtual(id); !ok {
				continue
			}
			for _, ref := range u.search.c.lockStack(k) {
				u.locked[ref] = id
			}
		}
	}
	return LockOwner{Virtual: u.locked[object&k.mask]}
}

// wantsUnmounted reads what a virtual thread without a carrier waits for.
func (k *Locks) wantsUnmounted(object uint64, state string) (w Wanted) {
	switch state {
	case virtualParked, virtualTimedParked:
		b := make([]byte, k.threadHead())
		if k.vm.mem.Bytes(object, b) != nil || k.forwarded(&object, b) == nil || k.vm.java.blocker == 0 {
			return w
		}
		if c := k.classOf(b); c == nil || !c.virtual {
			return w
		}
		blocker, err := k.oopIn(b, k.vm.java.blocker)
		if err != nil || blocker == 0 {
			return w
		}
		lock, owner, ok := k.synchronizer(blocker)
		if !ok {
			return w
		}
		return Wanted{Lock: lock, How: WaitToUnpark, Owner: owner, Timed: state == virtualTimedParked}
	case virtualBlocked, virtualWaiting, virtualTimedWaiting:
		at, m := k.waitsAt(object)
		if m == nil || m.object == 0 {
			return w
		}
		w = Wanted{Lock: m.lockOf(at), How: WaitToNotify, Timed: state == virtualTimedWaiting}
		if state == virtualBlocked {
			w.How, w.Owner = WaitToEnter, m.owner
		} else if class, ok := k.awaitedClass(at, m, false); ok {
			return class
		}
	}
	return w
}

// waitsAt returns the monitor for which a virtual thread without a carrier waits, and the monitor's address. m is nil
// if its ObjectWaiter is not found (see the top of this file). object is the thread.
func (k *Locks) waitsAt(object uint64) (at uint64, m *monitor) {
	u := &k.unmounted
	if u.waiters == nil {
		u.waiters = []rawField{}
		var head [klassBytes]byte
		if k.vm.mem.Bytes(object, head[:]) == nil {
			if found, err := k.vm.injectedIn(k.klasses.klassIn(head[:])); err == nil {
				u.waiters = found
			}
		}
	}
	for _, field := range u.waiters {
		if field.offset > maxFieldOffset {
			continue
		}
		waiter, err := k.vm.mem.U64(object + uint64(field.offset))
		if err != nil || waiter == 0 || waiter%8 != 0 {
			continue
		}
		var b [waiterBytes]byte
		if k.vm.mem.Bytes(waiter, b[:]) != nil {
			continue
		}
		for off := 0; off+16 <= len(b); off += 8 {
			handle, monitor := word(b[off:]), word(b[off+8:])
			if handle == 0 || handle%8 != 0 || monitor == 0 || monitor%8 != 0 || !k.leadsTo(handle, object) {
				continue
			}
			if m := k.monitorAt(monitor); m != nil && m.object != 0 && k.isMonitor(m, monitor) {
				return monitor, m
			}
		}
	}
	return 0, nil
}

func (k *Locks) leadsTo(handle, object uint64) bool {
	ref, err := k.vm.mem.U64(handle)
	if err != nil || ref == 0 {
		return false
	}
	at, err := k.uncolour(ref)
	return err == nil && at != 0 && k.same(at, object)
}

// isMonitor reports whether the mark word of a monitor's object confirms that the object has that monitor.
func (k *Locks) isMonitor(m *monitor, at uint64) bool {
	mark, err := k.vm.mem.U64(m.object)
	return err == nil && mark&3 == 2 && (k.table || mark&^3 == at)
}
