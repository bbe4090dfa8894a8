package vmstructs

// waitLayout has the fields for what a waiting thread waits for. runtime/javaThread.hpp (thread.hpp up to 18),
// runtime/objectMonitor.hpp.
type waitLayout struct {
	// pending is the ObjectMonitor that a thread waits to enter. waiting is the ObjectMonitor of Object.wait (up to 11 or
	// so in Thread).
	pending offset `need:"JavaThread._current_pending_monitor|Thread._current_pending_monitor"`
	waiting offset `need:"JavaThread._current_waiting_monitor|Thread._current_waiting_monitor"`
	object  offset `need:"ObjectMonitor._object"`
	// handle: object is a WeakHandle, a pointer to the reference. Up to 15 it is the reference itself. The tables do not
	// have its type. But the change that introduced the WeakHandle also put monitors into a list (JDK 16, JDK-8256814),
	// which the tables have.
	handle bool

	// narrowBase and narrowShift decode class pointers.
	narrowBase  uint64 `need:"CompressedKlassPointers._base|CompressedKlassPointers._narrow_klass._base|Universe._narrow_klass._base"`
	narrowShift uint64 `need:"CompressedKlassPointers._shift|CompressedKlassPointers._narrow_klass._shift|Universe._narrow_klass._shift"`
}

// capWaits is missing if a JVM does not export all of waitLayout.
const capWaits = "what threads wait for"

func (r *resolver) wait() waitLayout {
	l := fill[waitLayout](r, capWaits)
	l.handle = r.static("", "ObjectSynchronizer._in_use_list") != 0
	if !l.handle && r.static("", "ObjectSynchronizer.gBlockList") == 0 {
		r.lost(capWaits, "ObjectSynchronizer._in_use_list|ObjectSynchronizer.gBlockList")
		l.object = absent // it is not known which of the two it is
	}
	return l
}
