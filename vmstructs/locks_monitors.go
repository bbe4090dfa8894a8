package vmstructs

import "slices"

// monitor is an ObjectMonitor as one round has read it.
type monitor struct {
	object uint64 // 0: the collector is moving the object, or the monitor has none
	class  string
	owner  LockOwner
	owned  bool // the monitor has an owner, even if the owner is not known
}

// The values of ObjectMonitor::_owner that identify no thread (runtime/objectMonitor.hpp).
const (
	ownerAnonymous = 1 // ANONYMOUS_OWNER: the thread that has the lock in its LockStack, or on its stack
	ownerDeflater  = 2 // DEFLATER_MARKER, since 24: the monitor is being removed from its object
)

// readList finds the monitors that have an owner. The list is long and changes little. So the first round reads the
// list, and later rounds only read the monitors that the first round has found.
func (k *Locks) readList() {
	if !k.all {
		k.all, k.listed = true, k.listed[:0]
		if k.vm.l.locks.inUse != 0 && k.vm.l.locks.next.ok() {
			k.linkedMonitors()
		} else {
			k.monitorBlocks()
		}
	}
	for _, at := range k.listed {
		k.monitorAt(at)
	}
}

// linkedMonitors follows ObjectSynchronizer::_in_use_list (runtime/synchronizer.hpp). It may read a freed monitor.
// readMonitor detects that, because the object does not refer to the monitor.
func (k *Locks) linkedMonitors() {
	l := &k.vm.l.locks
	at, err := k.vm.mem.Ptr(l.inUse + uint64(l.first))
	b := make([]byte, l.span)
	seen := map[uint64]bool{}
	for err == nil && at != 0 && at%8 == 0 && !seen[at] {
		if len(seen) >= maxMonitors {
			return // a limit that docs/locks.md describes
		}
		seen[at] = true
		if err = k.vm.mem.Bytes(at, b); err != nil {
			return
		}
		if l.owner.u64(b) != 0 {
			k.listed = append(k.listed, at)
		}
		at = l.next.u64(b)
	}
}

// monitorBlocks walks ObjectSynchronizer::gBlockList (runtime/synchronizer.cpp of JDK 8 and 11). Blocks are never
// freed. The first monitor of each block is only the link to the next block.
func (k *Locks) monitorBlocks() {
	l := &k.vm.l.locks
	if l.blocks == 0 {
		return
	}
	at, err := k.vm.mem.Ptr(l.blocks)
	b := make([]byte, int(l.stride)*l.inBlock)
	if len(b) < l.span {
		return
	}
	seen := map[uint64]bool{}
	for err == nil && at != 0 && at%8 == 0 && !seen[at] {
		if len(seen)*l.inBlock >= maxMonitors {
			return // a limit that docs/locks.md describes
		}
		seen[at] = true
		if err = k.vm.mem.Bytes(at, b); err != nil {
			return
		}
		for i := 1; i < l.inBlock; i++ {
			m := b[i*int(l.stride):]
			if len(m) >= l.span && l.owner.u64(m) != 0 && k.vm.l.wait.object.u64(m) != 0 {
				k.listed = append(k.listed, at+uint64(i)*l.stride)
			}
		}
		at = l.link.u64(b)
	}
}

// monitorAt reads a monitor, once in a round. It returns nil if the monitor cannot be read.
func (k *Locks) monitorAt(at uint64) *monitor {
	if m, ok := k.monitors[at]; ok {
		return m
	}
	var m *monitor
	b := make([]byte, k.vm.l.locks.span)
	if at != 0 && at%8 == 0 && k.vm.mem.Bytes(at, b) == nil {
		m = &monitor{}
		k.readMonitor(at, m, b)
	}
	k.monitors[at] = m
	return m
}

// readMonitor reads a monitor: its owner, and its object, which must refer back to the monitor.
func (k *Locks) readMonitor(at uint64, m *monitor, b []byte) {
	object := k.vm.l.wait.object.u64(b)
	if k.vm.l.wait.handle && object != 0 {
		var err error
		if object, err = k.vm.mem.U64(object); err != nil {
			object = 0
		}
	}
	if object, err := k.uncolour(object); err == nil && object != 0 {
		if head := k.headOf(&object); head != nil && k.inflated(at, word(head)) {
			if m.class = k.nameOf(head); m.class != "" {
				m.object = object & k.mask
				k.objects[m.object] = at
			}
		}
	}
	m.owner, m.owned = k.ownerOf(m, b)
}

// inflated reports whether a mark word may be that of an object whose monitor is at an address. If the JVM has a table
// of monitors, the mark word has no address. Without ZGC's tables, any mark word is accepted.
func (k *Locks) inflated(at, mark uint64) bool {
	return !k.pages.on || mark&3 == 2 && (k.table || mark&^3 == at)
}

// ownerOf decodes the owner of a monitor from the monitor's bytes. owned is true if a thread owns the monitor, even if
// that thread is not known.
func (k *Locks) ownerOf(m *monitor, b []byte) (o LockOwner, owned bool) {
	l := &k.vm.l.locks
	owner := l.owner.u64(b)
	ids := l.ownerID.ok()
	switch {
	case owner == 0, owner == ownerDeflater, int64(owner) < 0 && !ids: // up to 23 the deflater's mark is -1
		return o, false
	case owner == ownerAnonymous && (l.stack.ok() || ids):
		return k.anonymous(m, b), true
	case ids:
		if i, ok := k.byID[owner]; ok {
			return k.ownerAt(i), true
		}
		return LockOwner{Virtual: owner}, true // it has no carrier
	}
	if i, ok := k.byAddr[owner]; ok {
		return k.ownerAt(i), true
	}
	if i, ok := k.onStack(owner); ok { // a BasicLock on the owner's stack: the monitor was made when other threads waited
		return k.ownerAt(i), true
	}
	return o, true
}

// anonymous finds the owner of a monitor that a waiting thread has made without knowing the owner.
func (k *Locks) anonymous(m *monitor, b []byte) LockOwner {
	l := &k.vm.l.locks
	if l.stackLocker.ok() {
		if i, ok := k.onStack(l.stackLocker.u64(b)); ok {
			return k.ownerAt(i)
		}
	}
	if m.object == 0 {
		return LockOwner{}
	}
	if o := k.inLockStack(m.object); o != (LockOwner{}) {
		return o
	}
	return k.lockedUnmounted(m.object)
}

// inLockStack returns the thread that has an object in its LockStack, or an empty owner.
func (k *Locks) inLockStack(object uint64) LockOwner {
	if k.fast == nil {
		k.fast = map[uint64]int{}
		for i := range slices.Backward(k.threads) { // if several threads have the object, the first one stays in the map
			for _, ref := range k.threads[i].stack {
				if ref, ok := k.root(ref); ok {
					k.fast[ref&k.mask] = i
				}
			}
		}
	}
	if i, ok := k.fast[object&k.mask]; ok {
		return k.ownerAt(i)
	}
	return LockOwner{}
}

// ownerAt returns thread i as an owner, with the virtual thread that it runs.
func (k *Locks) ownerAt(i int) LockOwner {
	return LockOwner{Thread: k.threads[i].Addr, Virtual: k.threads[i].virtual}
}

func (m *monitor) lockOf(at uint64) Lock {
	return Lock{Kind: MonitorLock, Class: m.class, Object: m.object, Monitor: at}
}

// wants returns the lock for which thread i waits: to enter a monitor, to be notified, or to be unparked. It is empty
// if the thread waits for no lock.
func (k *Locks) wants(i int) (w Wanted) {
	t := &k.threads[i]
	at, how := t.pending, WaitToEnter
	if at == 0 && t.waiting != 0 {
		at, how = t.waiting, WaitToNotify
		// The thread was notified, and waits to get the monitor back (runtime/objectMonitor.cpp, INotify).
		if k.statusOf(t)&statusBlocked != 0 {
			how = WaitToEnter
		}
	}
	if at == 0 {
		return k.parked(t)
	}
	m := k.monitorAt(at)
	if m == nil {
		return w
	}
	if how == WaitToNotify {
		if w, ok := k.awaitedClass(at, m, k.statusOf(t)&statusRunnable != 0); ok {
			return w
		}
	}
	w = Wanted{Lock: m.lockOf(at), How: how}
	if how == WaitToEnter {
		w.Owner = m.owner
	} else {
		w.Timed = k.statusOf(t)&statusTimed != 0
	}
	return w
}
