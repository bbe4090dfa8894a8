package vmstructs

import "encoding/binary"

// java.util.concurrent's locks are Java objects. A thread that waits for one is parked, and its Thread.parkBlocker is
// the lock's AbstractOwnableSynchronizer, which knows its owner.

// lockClass is what is known of the class of an object that is locked, or waited for.
type lockClass struct {
	name     string
	virtual  bool   // java.lang.VirtualThread
	thread   bool   // java.lang.Thread, or one of its subclasses
	owner    uint64 // where exclusiveOwnerThread is, 0: it has none
	state    uint64 // where AbstractQueuedSynchronizer.state is
	long     bool   // or AbstractQueuedLongSynchronizer.state, of eight bytes
	readers  bool   // of a ReentrantReadWriteLock
	reader   uint64 // where firstReader is
	holds    uint64 // where firstReaderHoldCount is
	oneOwner bool   // nobody else can own it: of a ReentrantLock
	span     uint64
}

// classOf is the class of the object that begins with head. It is nil if that cannot be told.
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

// nameOf is the name of an object's class, empty if that cannot be told.
func (k *Locks) nameOf(head []byte) string {
	if c := k.classOf(head); c != nil {
		return c.name
	}
	return ""
}

// readClass reads a class, and its superclasses, for the fields that say who owns it.
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

// ownFields finds the fields of the classes that are known to have them.
func (k *Locks) ownFields(c *lockClass, klass uint64, name string) error {
	switch name {
	case "java/util/concurrent/locks/AbstractOwnableSynchronizer", "java/util/concurrent/locks/AbstractQueuedSynchronizer",
		longSynchronizer,
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
		case f.name == "exclusiveOwnerThread":
			c.owner = f.offset
		case f.name == "state" && !readers:
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

// parked reads what a thread is parked for. parkBlocker is there some time before it parks, and whether that is for
// ever Java says only when it has. A JVM that was stopped may stand in between.
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

// synchronizer reads the object that a thread is parked for: who owns it, if it can have an owner.
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
	case err != nil:
		l.Kind = ExclusiveLock // somebody has it; the collector hides who
		return l, o, true
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

// readerCount is how many times a ReentrantReadWriteLock is held for reading: the upper half of its state, which has
// eight bytes since 24 or so (ReentrantReadWriteLock.Sync.SHARED_SHIFT).
func (c *lockClass) readerCount(b []byte) uint64 {
	switch {
	case c.state == 0:
		return 0
	case c.long:
		return word(b[c.state:]) >> 32
	}
	return uint64(binary.LittleEndian.Uint32(b[c.state:])) >> 16
}

// readersIn tells a lock that readers hold, and the first of them, where the lock knows it: nobody can have the
// write lock before that one has let go.
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

// ownerObject tells which thread a java.lang.Thread is.
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

// virtualName reads the name of the virtual thread at an address, empty if that cannot be done now.
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

// heldByBlockers adds to what threads hold the locks of java.util.concurrent for which others wait. Others are not
// found: they are objects of the heap like any other.
func (k *Locks) heldByBlockers(all []ThreadLocks) {
	type held struct{ owner, object uint64 }
	seen := map[held]bool{}
	for i := range all {
		w := &all[i].Wants
		at, ok := k.byAddr[w.Owner.Thread]
		if !ok || w.Kind != ExclusiveLock && w.Kind != SharedLock || seen[held{w.Owner.Thread, w.Object}] {
			continue
		}
		seen[held{w.Owner.Thread, w.Object}] = true
		if len(all[at].Holds) < maxHeldByThread {
			all[at].Holds = append(all[at].Holds, Held{Lock: w.Lock, Frame: -1})
		}
	}
}
