package vmstructs

// waitLayout: what a thread that stands still waits for. runtime/javaThread.hpp (thread.hpp up to 18),
// runtime/objectMonitor.hpp.
type waitLayout struct {
	pending offset // JavaThread (up to 11 or so Thread): the ObjectMonitor that it waits to enter
	waiting offset // the same: of Object.wait
	object  offset // ObjectMonitor
	// handle: object is a WeakHandle, a pointer to the reference; up to 15 it is the reference. The table
	// has no type for it. That monitors are in a list, not in blocks, is of the same change (JDK 16, JDK-8256814).
	handle bool

	narrowBase, narrowShift uint64 // of class pointers
}

// capWaits is lost by JVMs that do not tell all of it.
const capWaits = "what threads wait for"

func (r *resolver) wait() waitLayout {
	l := waitLayout{
		pending: r.field(capWaits, "JavaThread._current_pending_monitor|Thread._current_pending_monitor"),
		waiting: r.field(capWaits, "JavaThread._current_waiting_monitor|Thread._current_waiting_monitor"),
		object:  r.field(capWaits, "ObjectMonitor._object"),
		handle:  r.static("", "ObjectSynchronizer._in_use_list") != 0,
		narrowBase: r.static(capWaits, "CompressedKlassPointers._base|CompressedKlassPointers._narrow_klass._base|"+
			"Universe._narrow_klass._base"),
		narrowShift: r.static(capWaits, "CompressedKlassPointers._shift|CompressedKlassPointers._narrow_klass._shift|"+
			"Universe._narrow_klass._shift"),
	}
	if !l.handle && r.static("", "ObjectSynchronizer.gBlockList") == 0 {
		r.lost(capWaits, "ObjectSynchronizer._in_use_list|ObjectSynchronizer.gBlockList")
		l.object = absent // there is no telling which of the two it is
	}
	return l
}
