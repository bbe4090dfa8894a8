package vmstructs

import "strings"

// lockLayout: which thread owns a monitor, and where all monitors are. runtime/objectMonitor.hpp, synchronizer.hpp,
// basicLock.hpp, lockStack.hpp, javaThread.hpp; gc/shared/collectedHeap.hpp.
type lockLayout struct {
	owner offset // ObjectMonitor: a JavaThread, a BasicLock on its owner's stack, or since 24 a number
	// ownerID is the number by which a JavaThread is known as an owner. If ownerID exists, ObjectMonitor::_owner is
	// such a number too.
	ownerID     offset
	stackLocker offset // ObjectMonitor (24, 25): the BasicLock of an owner that is not known yet
	span        int    // how much is read of an ObjectMonitor

	inUse   uint64 // ObjectSynchronizer::_in_use_list, since 16
	first   offset // MonitorList
	next    offset // ObjectMonitor
	blocks  uint64 // ObjectSynchronizer::gBlockList, up to 15: blocks of monitors
	link    offset // ObjectMonitor: in the first monitor of a block: leads to the next block
	stride  uint64 // from monitor to monitor
	inBlock int

	stack    offset // JavaThread: its LockStack, since 21
	stackLen uint64 // bytes of a LockStack
	top      sized
	base     offset

	lockBytes uint64 // of a BasicObjectLock, as they lie in the interpreter's frames
	lockObj   offset

	super   offset // Klass
	heap    uint64 // Universe::_collectedHeap
	stopped sized  // CollectedHeap: the heap is being collected while threads stand still
	count   sized
	z, x    zPagesLayout
	init    initLayout
}

// capLocks is lost by JVMs that do not tell all of it.
const capLocks = "who owns locks"

func (r *resolver) locks() lockLayout {
	l := lockLayout{
		owner:       r.field(capLocks, "ObjectMonitor._owner"),
		ownerID:     r.field("", "JavaThread._monitor_owner_id"),
		stackLocker: r.field("", "ObjectMonitor._stack_locker"),
		inUse:       r.static("", "ObjectSynchronizer._in_use_list"),
		first:       absent,
		next:        absent,
		blocks:      r.static("", "ObjectSynchronizer.gBlockList"),
		link:        absent,
		stack:       r.field("", "JavaThread._lock_stack"),
		top:         r.sized("", "LockStack._top"),
		base:        r.field("", "LockStack._base[0]"),
		lockBytes:   r.size(capLocks, "BasicObjectLock"),
		lockObj:     r.field(capLocks, "BasicObjectLock._obj"),
		super:       r.field(capLocks, "Klass._super"),
		heap:        r.static(capLocks, "Universe._collectedHeap"),
		stopped:     r.sized(capLocks, "CollectedHeap._is_stw_gc_active|CollectedHeap._is_gc_active"),
		count:       r.sized(capLocks, "CollectedHeap._total_collections"),
		z:           r.zPages("Z"),
		x:           r.zPages("X"),
		init:        r.init(),
	}
	r.monitors(&l)
	if f, ok := r.lookup("ObjectMonitor._owner", false); ok && strings.Contains(f.typ, "int") && !l.ownerID.ok() {
		r.lost(capLocks, "JavaThread._monitor_owner_id") // it is not known whose number it is
	}
	if r.t.sizes["LockStack"] != 0 && !l.stack.ok() {
		r.lost(capLocks, "JavaThread._lock_stack")
	}
	if l.stack.ok() {
		if l.stackLen = r.size(capLocks, "LockStack"); !l.top.ok() || !l.base.ok() {
			r.lost(capLocks, "LockStack._top|LockStack._base[0]")
			l.stack = absent
		}
	}
	l.span = span(l.owner, l.stackLocker, l.next, l.link, r.field("", "ObjectMonitor._object"))
	return l
}

// monitors finds where all monitors are.
func (r *resolver) monitors(l *lockLayout) {
	switch {
	case l.inUse != 0:
		l.first = r.field(capLocks, "MonitorList._head")
		l.next = r.field(capLocks, "ObjectMonitor._next_om")
	case l.blocks != 0:
		l.link = r.field(capLocks, "ObjectMonitor.FreeNext|ObjectMonitor._next_om")
		monitor := "ObjectMonitor"
		if f, ok := r.lookup("ObjectSynchronizer.gBlockList", true); ok && strings.Contains(f.typ, "Padded") {
			monitor = "PaddedObjectMonitor" // JDK 8 does not pad them
		}
		l.stride = r.size(capLocks, monitor)
		l.inBlock = int(r.int("ObjectSynchronizer::_BLOCKSIZE", 128))
		if l.stride > 4096 || l.inBlock < 1 || l.inBlock > maxInBlock {
			r.lost(capLocks, "ObjectSynchronizer.gBlockList")
			l.blocks = 0
		}
	default:
		r.lost(capLocks, "ObjectSynchronizer._in_use_list|ObjectSynchronizer.gBlockList")
	}
}

// maxInBlock bounds how many monitors a block may have.
const maxInBlock = 1 << 12
