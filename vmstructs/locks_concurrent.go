package vmstructs

import "encoding/binary"

// The locks of java.util.concurrent are Java objects. A thread that waits for such a lock is parked, and its field
// Thread.parkBlocker refers to the lock's AbstractOwnableSynchronizer, which has the owner.

// lockClass has the facts about the class of an object that is locked or waited for.
type lockClass struct {
	name     string
	virtual  bool   // java.lang.VirtualThread
	thread   bool   // java.lang.Thread, or one of its subclasses
	owner    uint64 // the offset of exclusiveOwnerThread, 0 if the class has no such field
	state    uint64 // of AbstractQueuedSynchronizer.state
	long     bool   // state is AbstractQueuedLongSynchronizer's and has eight bytes
	readers  bool   // ReentrantReadWriteLock's Sync, or a subclass
	reader   uint64 // of firstReader
	holds    uint64 // of firstReaderHoldCount
	task     bool   // FutureTask, or a subclass: owner is its runner
	oneOwner bool   // ReentrantLock's Sync: the lock has at most one owner
	span     uint64 // the bytes of an object that must be read for these fields
}

// classOf returns the class of the object that begins with head. It is nil if the class is not known.
func (k *Locks) classOf(head []byte) *lockClass {
	klass := k.klasses.klassIn(head)
	if klass == 0 || klass%8 != 0 {
		return nil
	}
	if c, ok := k.classes[klass]; ok {
		return c
	}
	c, err := k.readClass(klass)
	if err != nil {
		return nil
	}
	if len(k.classes) >= maxLockClasses {
		clear(k.classes)
	}
	k.classes[klass] = c
	return c
}

// nameOf returns the name of an object's class. It is empty if the class is not known.
func (k *Locks) nameOf(head []byte) string {
	if c := k.classOf(head); c != nil {
		return c.name
	}
	return ""
}

// readClass reads a class and its superclasses, and finds the fields that refer to the owner of a lock of that class.
func (k *Locks) readClass(klass uint64) (*lockClass, error) {
	name, err := k.vm.klassName(klass)
	if err != nil {
		return nil, err
	}
	c := &lockClass{name: name, span: klassBytes, virtual: name == "java/lang/VirtualThread"}
	if name == "" || name[0] == '[' {
		return c, nil // arrays are locked like other objects, and have no fields
	}
	for range maxSupers {
		switch name {
		case "java/lang/Thread":
			c.thread = true
		case "java/util/concurrent/locks/ReentrantLock$Sync":
			c.oneOwner = true
		case classFutureTask:
			c.task = true
		}
		if err := k.ownFields(c, klass, name); err != nil {
			return nil, err
		}
		if klass, err = k.vm.mem.Ptr(klass + uint64(k.vm.l.locks.super)); err != nil {
			return nil, err
		}
		if klass == 0 {
			return c, nil
		}
		if name, err = k.vm.klassName(klass); err != nil {
			return nil, err
		}
	}
	return nil, ErrBadMethod
}

// classFutureTask is the class of an ExecutorService's tasks. A thread that waits for a result is parked for the
// FutureTask itself. Its field runner is the thread that runs the task, and null before and after.
const classFutureTask = "java/util/concurrent/FutureTask"

// ownFields finds the fields of lockClass that one class declares.
func (k *Locks) ownFields(c *lockClass, klass uint64, name string) error {
	switch name {
	case "java/util/concurrent/locks/AbstractOwnableSynchronizer", "java/util/concurrent/locks/AbstractQueuedSynchronizer",
		longSynchronizer, classFutureTask,
		"java/util/concurrent/locks/ReentrantReadWriteLock$Sync":
	default:
		return nil
	}
	fields, err := k.vm.fieldsOf(klass)
	if err != nil {
		return err
	}
	readers := name == "java/util/concurrent/locks/ReentrantReadWriteLock$Sync"
	c.readers = c.readers || readers
	for _, f := range fields {
		switch {
		case f.name == "exclusiveOwnerThread", f.name == "runner" && name == classFutureTask:
			c.owner = f.offset
		case f.name == "state" && !readers && name != classFutureTask:
			c.state, c.long = f.offset, name == longSynchronizer
		case f.name == "firstReader" && readers:
			c.reader = f.offset
		case f.name == "firstReaderHoldCount" && readers:
			c.holds = f.offset
		default:
			continue
		}
		c.span = max(c.span, f.offset+8)
	}
	return nil
}

// parked reads the object for which a thread is parked. The thread sets parkBlocker before it parks. Only its status
// shows whether it has parked, and with a time limit or without. If it has not parked, parked reports no wait.
func (k *Locks) parked(t *lockThread) (w Wanted) {
	if t.blocker == 0 {
		return w
	}
	status := k.statusOf(t)
	if t.virtual == 0 && k.vm.java.status != 0 && status&statusParked == 0 {
		return w
	}
	lock, owner, ok := k.synchronizer(t.blocker)
	if !ok {
		return w
	}
	w = Wanted{Lock: lock, How: WaitToUnpark, Owner: owner}
	w.Timed = status&statusTimed != 0
	return w
}

// synchronizer reads the object for which a thread is parked, and the object's owner. ok is false if it cannot be read.
func (k *Locks) synchronizer(at uint64) (l Lock, o LockOwner, ok bool) {
	var head [klassBytes]byte
	if k.vm.mem.Bytes(at, head[:]) != nil || k.forwarded(&at, head[:]) == nil {
		return l, o, false
	}
	c := k.classOf(head[:])
	if c == nil || c.name == "" {
		return l, o, false
	}
	l = Lock{Kind: UnownableLock, Class: c.name, Object: at & k.mask}
	if c.owner == 0 {
		return l, o, true
	}
	b := make([]byte, max(c.span, klassBytes))
	if k.vm.mem.Bytes(at, b) != nil || k.classOf(b) != c {
		return l, o, false
	}
	thread, err := k.oopIn(b, c.owner)
	switch {
	case c.task && (thread != 0 || err != nil):
		l.Kind = TaskResult
	case err != nil:
		l.Kind = ExclusiveLock // the owner is an object that the collector is moving
	case thread != 0:
		l.Kind = ExclusiveLock
	case c.readers:
		l.Kind, thread = k.readersIn(c, b)
	case c.oneOwner:
		l.Kind = ExclusiveLock
	}
	if thread != 0 {
		o = k.ownerObject(thread)
	}
	return l, o, true
}

const longSynchronizer = "java/util/concurrent/locks/AbstractQueuedLongSynchronizer"

// readerCount returns how many times a ReentrantReadWriteLock is held for reading. This is the upper half of its state
// (ReentrantReadWriteLock.Sync.SHARED_SHIFT). The state has four bytes up to 21, and eight since 25.
func (c *lockClass) readerCount(b []byte) uint64 {
	switch {
	case c.state == 0:
		return 0
	case c.long:
		return word(b[c.state:]) >> 32
	}
	return uint64(binary.LittleEndian.Uint32(b[c.state:])) >> 16
}

// readersIn returns SharedLock if readers hold a lock, and the first of them, 0 if not known. No thread gets the write
// lock before that reader has released the lock.
func (k *Locks) readersIn(c *lockClass, b []byte) (LockKind, uint64) {
	if c.readerCount(b) == 0 {
		return ExclusiveLock, 0
	}
	if c.reader == 0 || c.holds == 0 || int32(binary.LittleEndian.Uint32(b[c.holds:])) <= 0 {
		return SharedLock, 0
	}
	thread, err := k.oopIn(b, c.reader)
	if err != nil {
		return SharedLock, 0
	}
	return SharedLock, thread
}

// ownerObject finds the thread of a java.lang.Thread.
func (k *Locks) ownerObject(at uint64) (o LockOwner) {
	j := &k.vm.java
	b := make([]byte, k.threadHead())
	if k.vm.mem.Bytes(at, b) != nil || k.forwarded(&at, b) == nil {
		return o
	}
	c := k.classOf(b)
	switch {
	case c == nil || !c.thread:
		return o
	case !c.virtual:
		if i, ok := k.byAddr[word(b[j.eetop:])]; ok && k.same(k.threads[i].object, at) {
			return LockOwner{Thread: k.threads[i].Addr}
		}
		return o
	case j.tid == 0:
		return o
	}
	id := word(b[j.tid:])
	for i := range k.threads {
		if k.threads[i].virtual == id {
			return k.ownerAt(i)
		}
	}
	return LockOwner{Virtual: id, Name: k.virtualName(at)}
}

// virtualName reads the name of the virtual thread at an address. It is empty if it cannot be read now.
func (k *Locks) virtualName(at uint64) string {
	if k.virtual == nil {
		if k.virtual = k.vm.NewContinuations(); k.virtual == nil {
			return ""
		}
	}
	v, err := k.virtual.readVirtual(at)
	if err != nil {
		return ""
	}
	name, _ := k.virtual.readName(v)
	return name
}

// heldByBlockers takes the locks that threads wait for, and adds each to the thread that holds it. These are locks of
// java.util.concurrent, and classes under initialisation. Locks that no thread waits for are not found.
func (k *Locks) heldByBlockers(all []ThreadLocks) {
	type held struct{ owner, object uint64 }
	seen := map[held]bool{}
	for i := range all {
		w := &all[i].Wants
		at, ok := k.byAddr[w.Owner.Thread]
		kind := w.Kind == ExclusiveLock || w.Kind == SharedLock || w.Kind == ClassLock
		if !ok || !kind || seen[held{w.Owner.Thread, w.Object}] {
			continue
		}
		seen[held{w.Owner.Thread, w.Object}] = true
		if len(all[at].Holds) < maxHeldByThread {
			all[at].Holds = append(all[at].Holds, Held{Lock: w.Lock, Frame: -1})
		}
	}
}
