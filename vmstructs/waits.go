package vmstructs

import (
	"encoding/binary"

	"goprof/arch"
	"goprof/process"
)

// Waits finds out what a thread waits for. It has its own caches and scratch memory. One goroutine may use a Waits
// while another uses the VM from which it was made.
type Waits struct {
	vm      *VM // its own VM
	classes bool
	klasses klassModel
	model   bool // klasses has been read
	side    uint64

	state, pending, waiting, obj, current [8]byte
	head                                  [klassBytes]byte
	ranges                                []process.Range
}

// NewWaits returns a reader of what threads wait for. With classes it also reads the class of the object that a thread
// waits for.
func (vm *VM) NewWaits(classes bool) *Waits {
	w := &Waits{vm: newVM(vm.t, vm.l), classes: classes}
	w.vm.lib, w.vm.version = vm.lib, vm.version
	w.side, _ = w.vm.Side()
	return w
}

// ReadFrom sets another Target of the same process, from which memory is read from now on.
func (w *Waits) ReadFrom(t process.Target) *Waits {
	w.vm.setMemory(t)
	return w
}

// Read returns the JVM's facts about a thread that waits in that system call. The thread must not run during the
// reading, but the collector may. Read follows references in the heap twice. If they lead to different objects, or if a
// collection has stopped all threads, it sets only Moving.
func (w *Waits) Read(snap *process.Snapshot, call arch.Call) (j process.JavaWait) {
	if snap.SideAddr == 0 || len(snap.Side) == 0 {
		return j // not a Java thread
	}
	switch call {
	case arch.CallFutex, arch.CallSleep, arch.CallRestart:
	default:
		return j // the thread waits for a file, and only the kernel knows more
	}
	thread := snap.SideAddr - w.side
	if !w.readThread(thread) {
		return j
	}
	j.Monitor, j.Notify = word(w.pending[:]) != 0, word(w.waiting[:]) != 0
	state := w.vm.l.thread.states.of(int32(binary.LittleEndian.Uint32(w.state[:])))
	j.InVM = state&^1 != StateInNative && state&^1 != StateInJava
	t := Thread{Addr: thread, obj: word(w.obj[:])}
	for range 2 {
		before := w.vm.heapMoment()
		if !before.quiet {
			break
		}
		told := j
		told.Status = w.status(t)
		if w.classes {
			told.For = w.waitsFor(thread, &told)
		}
		if w.vm.nothingMoved(before) {
			return told
		}
	}
	j.Moving = true
	return j
}

// readThread reads the fields of the JavaThread itself.
func (w *Waits) readThread(thread uint64) bool {
	l, t := &w.vm.l.wait, &w.vm.l.thread
	w.ranges = w.ranges[:0]
	add := func(f offset, buf []byte) {
		clear(buf)
		if f.ok() {
			w.ranges = append(w.ranges, process.Range{Addr: thread + uint64(f), Buf: buf})
		}
	}
	add(t.state, w.state[:4])
	add(l.pending, w.pending[:])
	add(l.waiting, w.waiting[:])
	add(t.threadObj, w.obj[:])
	add(w.vm.l.cont.vthread, w.current[:])
	if !t.state.ok() {
		return false
	}
	w.vm.t.ReadMany(w.ranges)
	for i := range w.ranges {
		if !w.ranges[i].OK {
			return false
		}
	}
	return true
}

// status returns the thread's state in java.lang.Thread. It is empty if the state cannot be read now.
func (w *Waits) status(t Thread) string {
	for range 2 { // the collector may be moving the object
		before, err := w.vm.threadObject(t)
		if err != nil {
			continue
		}
		status, err := w.vm.statusOf(before)
		if err != nil {
			continue
		}
		if after, err := w.vm.threadObject(t); err == nil && after == before {
			return status
		}
	}
	return ""
}

// waitsFor returns the class of the object whose monitor the thread waits for, or for which it is parked.
func (w *Waits) waitsFor(thread uint64, j *process.JavaWait) string {
	if err := w.vm.readJavaFields(); err != nil {
		return ""
	}
	if !w.model {
		var err error
		if w.klasses, err = w.vm.readKlassModel(); err != nil {
			return ""
		}
		w.model = true
	}
	var object func() (uint64, error)
	switch {
	case j.Monitor:
		object = func() (uint64, error) { return w.monitorObject(word(w.pending[:])) }
	case j.Notify:
		object = func() (uint64, error) { return w.monitorObject(word(w.waiting[:])) }
	case j.Status == "" || WaitOfStatus(j.Status) == WaitsForUnpark:
		object = func() (uint64, error) { return w.parkBlocker(Thread{Addr: thread, obj: word(w.obj[:])}) }
	default:
		return ""
	}
	for range 2 {
		obj, err := object()
		if err != nil || obj == 0 {
			continue
		}
		class, err := w.className(obj)
		if err != nil {
			continue
		}
		if again, err := object(); err == nil && again == obj {
			return class
		}
	}
	return ""
}

// monitorObject returns the object to which an ObjectMonitor belongs (runtime/objectMonitor.hpp,
// ObjectMonitor::_object).
func (w *Waits) monitorObject(monitor uint64) (uint64, error) {
	l := &w.vm.l.wait
	if !l.object.ok() {
		return 0, ErrMissing
	}
	if !l.handle {
		return w.vm.wideOopAt(monitor + uint64(l.object))
	}
	handle, err := w.vm.mem.Ptr(monitor + uint64(l.object))
	if err != nil || handle == 0 {
		return 0, err
	}
	return w.vm.wideOopAt(handle)
}

// parkBlocker returns the argument of LockSupport.park. If the thread runs a virtual thread, that thread's object has
// it.
func (w *Waits) parkBlocker(t Thread) (uint64, error) {
	if w.vm.java.blocker == 0 {
		return 0, ErrMissing
	}
	obj, err := w.vm.threadObject(t)
	if handle := word(w.current[:]); err == nil && handle != 0 {
		obj, err = w.vm.wideOopAt(handle)
	}
	if err != nil || obj == 0 {
		return 0, err
	}
	return w.vm.oopAt(obj + w.vm.java.blocker)
}

// className reads the name of an object's class, with slashes. It is not cached, because another class may later have
// the same address.
func (w *Waits) className(obj uint64) (string, error) {
	head := w.head[:]
	if err := w.vm.mem.Bytes(obj, head); err != nil {
		return "", w.vm.moved(err)
	}
	klass := w.klasses.klassIn(head)
	if klass == 0 || klass%8 != 0 {
		return "", ErrMoved
	}
	return w.vm.klassName(klass)
}
