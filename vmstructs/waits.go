package vmstructs

import (
	"encoding/binary"

	"goprof/arch"
	"goprof/process"
)

// Waits tells what a thread that stands still waits for. It has scratch memory of its own: one
// goroutine may use it while another uses the VM that it was made of.
type Waits struct {
	vm      *VM // our own
	classes bool
	klasses klassModel
	model   bool // klasses has been read
	side    uint64

	state, pending, waiting, obj, current [8]byte
	head                                  [klassBytes]byte
	ranges                                []process.Range
}

// NewWaits returns a reader of what threads wait for. With classes it also reads the class of what that is.
func (vm *VM) NewWaits(classes bool) *Waits {
	w := &Waits{vm: newVM(vm.t, vm.l), classes: classes}
	w.vm.lib, w.vm.version = vm.lib, vm.version
	w.side, _ = w.vm.Side()
	return w
}

// ReadFrom makes another way to the same process the one by which memory is read.
func (w *Waits) ReadFrom(t process.Target) *Waits {
	w.vm.t, w.vm.mem = t, process.NewReader(t)
	return w
}

// Read tells what the JVM says of a thread that was found in that system call. The thread must not move meanwhile; the
// collector may: what leads through the heap is followed twice, and is unknown if the two ways differ, or if a
// collection had stopped all threads.
func (w *Waits) Read(snap *process.Snapshot, call arch.Call) (j process.JavaWait) {
	if snap.SideAddr == 0 || len(snap.Side) == 0 {
		return j // not a Java thread
	}
	switch call {
	case arch.CallFutex, arch.CallSleep, arch.CallRestart:
	default:
		return j // it waits for a file, which only the kernel knows
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

// readThread reads what stands in the JavaThread itself.
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

// status is what java.lang.Thread says of the thread, empty if that cannot be had now.
func (w *Waits) status(t Thread) string {
	for range 2 { // the collector may just be moving it
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

// waitsFor is the class of the monitor, or of LockSupport's blocker.
func (w *Waits) waitsFor(thread uint64, j *process.JavaWait) string {
	if err := w.vm.readJavaFields(); err != nil {
		return ""
	}
	if !w.model {
		var err error
		if w.klasses, err = w.vm.klassModelAt(w.vm.l.wait.narrowBase, w.vm.l.wait.narrowShift); err != nil {
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

// monitorObject is the object whose monitor it is.
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

// parkBlocker is what LockSupport.park was given, by the thread that is mounted if that is a virtual one.
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

// className reads the class of an object, in slashes. It is never kept: another class may come to where one was.
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
