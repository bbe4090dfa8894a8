package vmstructs

import (
	"cmp"
	"slices"

	"goprof/process"
)

// lockThread is a JavaThread as one round has read it.
type lockThread struct {
	Thread
	ok               bool
	pending, waiting uint64   // ObjectMonitors
	id               uint64   // the number that identifies it as the owner of a monitor (24 and later)
	stack            []uint64 // the references of its LockStack
	object           uint64   // its java.lang.Thread
	current          uint64   // the virtual thread that it runs, otherwise the same as object
	virtual          uint64   // the number of that virtual thread
	blocker          uint64   // the object for which current is parked
	status           uint32   // JVMTI thread state bits; 0: not known
}

// readThreads reads the fields of all JavaThreads with one call.
func (k *Locks) readThreads() {
	l, w := &k.vm.l.locks, &k.vm.l.wait
	fields := [...]struct {
		at offset
		n  uint64
	}{{w.pending, 8}, {w.waiting, 8}, {l.ownerID, 8}, {k.vm.l.thread.threadObj, 8}, {k.vm.l.cont.vthread, 8},
		{l.stack, min(l.stackLen, 8*maxLockStack)}}
	size := uint64(0)
	for _, f := range fields {
		size += f.n
	}
	buf := make([]byte, size*uint64(len(k.threads)))
	k.ranges = k.ranges[:0]
	for i := range k.threads {
		b := buf[uint64(i)*size:]
		for _, f := range fields {
			if f.at.ok() && f.n > 0 {
				k.ranges = append(k.ranges, process.Range{Addr: k.threads[i].Addr + uint64(f.at), Buf: b[:f.n:f.n]})
			}
			b = b[f.n:]
		}
	}
	k.vm.t.ReadMany(k.ranges)
	unread := map[uint64]bool{}
	for _, r := range k.ranges {
		if !r.OK {
			unread[r.Addr] = true
		}
	}
	for i := range k.threads {
		t, b := &k.threads[i], buf[uint64(i)*size:]
		t.ok = true
		for _, f := range fields {
			t.ok = t.ok && !(f.at.ok() && unread[t.Addr+uint64(f.at)])
		}
		t.pending, t.waiting, t.id = word(b), word(b[8:]), word(b[16:])
		t.object, t.current = word(b[24:]), word(b[32:])
		t.stack = k.lockStack(b[40:][:fields[5].n])
		if t.ok && l.ownerID.ok() && t.id > 2 { // 0 to 2 identify no thread: see ownerDeflater
			k.byID[t.id] = i
		}
	}
}

// lockStack returns the references in a LockStack (runtime/lockStack.hpp). LockStack::_top is an offset in the
// JavaThread, not in the LockStack.
func (k *Locks) lockStack(b []byte) (refs []uint64) {
	l := &k.vm.l.locks
	if !l.stack.ok() || uint64(l.top.offset)+uint64(l.top.width) > uint64(len(b)) {
		return nil
	}
	top := l.top.unsigned(append(slices.Clip(b), make([]byte, 8)...))
	at := uint64(l.stack) + uint64(l.base)
	for b := b[min(int(l.base), len(b)):]; at < top && len(b) >= 8; b, at = b[8:], at+8 {
		refs = append(refs, word(b))
	}
	return refs
}

// threadHead is the number of bytes of a java.lang.Thread that have all fields to be read.
func (k *Locks) threadHead() uint64 {
	j := &k.vm.java
	return max(klassBytes, j.eetop+8, j.blocker+8, j.holder+8, j.status+8, j.tid+8)
}

// readObjects reads the java.lang.Thread of each thread, and the object for which the thread is parked.
func (k *Locks) readObjects() {
	handles := make([]uint64, 0, 2*len(k.threads))
	for i := range k.threads {
		handles = append(handles, k.threads[i].object, k.threads[i].current)
	}
	words := k.words(handles)
	objects := make([]uint64, 0, len(handles))
	for i := range k.threads {
		t := &k.threads[i]
		object, current := words[2*i], words[2*i+1]
		if !k.vm.l.thread.objHandle {
			object = t.object
		}
		t.object, t.current = 0, 0
		if o, err := k.uncolour(object); err == nil && t.ok {
			t.object = o
		}
		if c, err := k.uncolour(current); err == nil && t.ok && k.vm.l.cont.vthread.ok() {
			t.current = c
		}
		if t.current == 0 && !k.vm.l.cont.vthread.ok() {
			t.current = t.object
		}
		objects = append(objects, t.object)
	}
	n := k.threadHead()
	bodies := k.bodies(objects, n)
	for i := range k.threads {
		k.readThreadObject(&k.threads[i], bodies[i])
	}
}

// words reads eight bytes at each address. A word that cannot be read is 0.
func (k *Locks) words(at []uint64) []uint64 {
	out := make([]uint64, len(at))
	for i, b := range k.bodies(at, 8) {
		if b != nil {
			out[i] = word(b)
		}
	}
	return out
}

// bodies reads n bytes at each address. An object that cannot be read is nil.
func (k *Locks) bodies(at []uint64, n uint64) [][]byte {
	buf := make([]byte, n*uint64(len(at)))
	k.ranges = k.ranges[:0]
	which := make([]int, 0, len(at))
	for i, a := range at {
		if a != 0 {
			k.ranges = append(k.ranges, process.Range{Addr: a, Buf: buf[uint64(i)*n:][:n:n]})
			which = append(which, i)
		}
	}
	k.vm.t.ReadMany(k.ranges)
	out := make([][]byte, len(at))
	for i, r := range k.ranges {
		if r.OK {
			out[which[i]] = r.Buf
		}
	}
	return out
}

// readThreadObject reads the object for which a thread is parked. b has the thread's java.lang.Thread, whose field
// eetop must point back to the JavaThread.
func (k *Locks) readThreadObject(t *lockThread, b []byte) {
	j := &k.vm.java
	if b = k.forwarded(&t.object, b); b == nil || word(b[j.eetop:]) != t.Addr {
		t.object, t.current = 0, 0
		return
	}
	if t.current != 0 && t.current != t.object {
		b = k.mountedHead(t)
	}
	if b == nil {
		return
	}
	if blocker, err := k.oopIn(b, j.blocker); err == nil && j.blocker != 0 {
		t.blocker = blocker
	}
}

// mountedHead reads the virtual thread that t runs. It returns nil if that fails.
func (k *Locks) mountedHead(t *lockThread) []byte {
	b := make([]byte, k.threadHead())
	if k.vm.mem.Bytes(t.current, b) != nil {
		return nil
	}
	b = k.forwarded(&t.current, b)
	if b == nil || k.vm.java.tid == 0 {
		return nil
	}
	c := k.classOf(b)
	if c == nil || !c.virtual {
		return nil // a BoundVirtualThread, or another object that is now at that address
	}
	t.virtual = word(b[k.vm.java.tid:])
	return b
}

// headOf reads the head of the object at *object, and updates *object if the object was moved. It returns nil if the
// object cannot be read now.
func (k *Locks) headOf(object *uint64) []byte {
	head := make([]byte, klassBytes)
	if k.vm.mem.Bytes(*object, head) != nil {
		return nil
	}
	return k.forwarded(object, head)
}

// forwarded follows an object that was read into b to its new address, and reads b again from there. Shenandoah leaves
// that address in the old mark word (gc/shenandoah/shenandoahForwarding.hpp). forwarded returns nil if another
// collector has moved the object.
func (k *Locks) forwarded(at *uint64, b []byte) []byte {
	if b == nil {
		return nil
	}
	for range 2 {
		mark := word(b)
		if mark&3 != 3 {
			return b
		}
		if !k.moves {
			return nil
		}
		if *at = mark &^ 3; *at == 0 || k.vm.mem.Bytes(*at, b) != nil {
			return nil
		}
	}
	return nil
}

// statusOf reads Java's state of t. A virtual thread may wait without giving up its carrier. Then the JVM stores the
// state in the carrier's own java.lang.Thread (services/threadService.hpp, JavaThreadStatusChanger).
func (k *Locks) statusOf(t *lockThread) uint32 {
	j := &k.vm.java
	if t.status != 0 || t.object == 0 || j.status == 0 {
		return t.status
	}
	at := t.object
	if j.holder != 0 {
		var field [8]byte
		if k.vm.mem.Bytes(at+j.holder, field[:]) != nil {
			return 0
		}
		holder, err := k.oopIn(field[:], 0)
		if err != nil || holder == 0 {
			return 0
		}
		if k.headOf(&holder) == nil {
			return 0
		}
		at = holder
	}
	if s, err := k.vm.mem.U32(at + j.status); err == nil && threadStatuses[s] != "" {
		t.status = s
	}
	return t.status
}

// JVMTI thread state bits (prims/jvmti.xml). The numbers of threadStatuses consist of these bits.
const (
	statusRunnable = 0x4
	statusTimed    = 0x20
	statusParked   = 0x200
	statusBlocked  = 0x400
)

// sortStacks orders the threads by the addresses of their stacks.
func (k *Locks) sortStacks() {
	k.stacks = k.stacks[:0]
	for i := range k.threads {
		if k.threads[i].StackSize != 0 {
			k.stacks = append(k.stacks, int32(i))
		}
	}
	slices.SortFunc(k.stacks, func(a, b int32) int {
		return cmp.Compare(k.threads[a].StackBase, k.threads[b].StackBase)
	})
}

func (k *Locks) onStack(addr uint64) (int, bool) {
	n, _ := slices.BinarySearchFunc(k.stacks, addr, func(i int32, addr uint64) int {
		if k.threads[i].StackBase <= addr {
			return -1
		}
		return 1
	})
	if n == len(k.stacks) {
		return 0, false
	}
	t := &k.threads[k.stacks[n]]
	return int(k.stacks[n]), addr < t.StackBase && addr >= t.StackBase-t.StackSize
}
