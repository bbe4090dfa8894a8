package vmstructs

import "strings"

// lockLayout shows which thread owns a monitor, and where all monitors are. runtime/objectMonitor.hpp,
// synchronizer.hpp, basicLock.hpp, lockStack.hpp, javaThread.hpp; gc/shared/collectedHeap.hpp.
type lockLayout struct {
	// owner is a JavaThread, a BasicLock on its owner's stack, or a number (since 24).
	owner offset `need:"ObjectMonitor._owner"`
	// ownerID is the number that identifies a JavaThread as an owner. If it exists, owner is also such a number.
	ownerID offset `vm:"JavaThread._monitor_owner_id"`
	// stackLocker is the BasicLock of an owner that is not known yet (24, 25).
	stackLocker offset `vm:"ObjectMonitor._stack_locker"`
	span        int    // bytes of an ObjectMonitor that are read

	inUse   uint64 `vm:"ObjectSynchronizer._in_use_list"` // since 16
	first   offset // MonitorList
	next    offset // ObjectMonitor
	blocks  uint64 `vm:"ObjectSynchronizer.gBlockList"` // up to 15: blocks of monitors
	link    offset // in the first monitor of a block: the link to the next block
	stride  uint64 // distance of two monitors
	inBlock int

	stack    offset `vm:"JavaThread._lock_stack"` // its LockStack, since 21
	stackLen uint64 // bytes of a LockStack
	top      sized  `vm:"LockStack._top"`
	base     offset `vm:"LockStack._base[0]"`

	lockBytes uint64 `need:"BasicObjectLock"` // size in the interpreter's frames
	lockObj   offset `need:"BasicObjectLock._obj"`

	super   offset       `need:"Klass._super"`
	heap    uint64       `need:"Universe._collectedHeap"`
	stopped sized        `need:"CollectedHeap._is_stw_gc_active|CollectedHeap._is_gc_active"`
	count   sized        `need:"CollectedHeap._total_collections"`
	z       zPagesLayout `prefix:"Z"`
	x       zPagesLayout `prefix:"X"`
	init    initLayout   `cap:"who initialises classes"`
}

// capLocks is missing if a JVM does not export all of lockLayout.
const capLocks = "who owns locks"

func (r *resolver) locks() lockLayout {
	l := fill[lockLayout](r, capLocks)
	l.first, l.next, l.link = absent, absent, absent
	r.init(&l.init)
	r.monitors(&l)
	if f, ok := r.lookup("ObjectMonitor._owner", false); ok && strings.Contains(f.typ, "int") && !l.ownerID.ok() {
		r.lost(capLocks, "JavaThread._monitor_owner_id") // without it, an owner's number identifies no thread
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

// monitors finds the place of all monitors.
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

const maxInBlock = 1 << 12
