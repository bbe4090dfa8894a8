package vmstructs

import (
	"testing"

	"goprof/arch"
	"goprof/process"
)

const (
	heapAt   = 0x5000
	threadAt = 0x9000
)

// collectedHeap makes a JVM with a heap that was collected seven times.
func collectedHeap() (*fakeTarget, *VM) {
	f := newFake()
	f.put64(0x4000, heapAt)
	f.put32(heapAt+0x10, 7)
	f.put(heapAt+0x20, 0)
	f.put32(threadAt+0x40, 10)
	l := &layout{}
	l.locks.heap = 0x4000
	l.locks.count, l.locks.stopped = sized{0x10, 4}, sized{0x20, 1}
	l.thread.state = 0x40
	l.thread.threadObj, l.wait.pending, l.wait.waiting, l.cont.vthread = absent, absent, absent, absent
	return f, newVM(f, l)
}

// addHeap gives a tiny JVM a heap that is not being collected.
func (w *world) addHeap() {
	w.l.locks.heap = 0x4000
	w.l.locks.count, w.l.locks.stopped = sized{0x10, 4}, sized{0x20, 1}
	w.put64(0x4000, heapAt)
	w.put(heapAt, make([]byte, 64)...)
}

// TestNothingMoved: facts from the heap are valid if no collection was under way before or after the reading, or in
// between.
func TestNothingMoved(t *testing.T) {
	for name, c := range map[string]struct {
		before, then func(*fakeTarget)
		want         bool
	}{
		"no collection":     {want: true},
		"one under way":     {before: func(f *fakeTarget) { f.put(heapAt+0x20, 1) }},
		"one began":         {then: func(f *fakeTarget) { f.put(heapAt+0x20, 1) }},
		"one came and went": {then: func(f *fakeTarget) { f.put32(heapAt+0x10, 8) }},
		"one was just ending": {before: func(f *fakeTarget) { f.put(heapAt+0x20, 1) },
			then: func(f *fakeTarget) { f.put(heapAt+0x20, 0) }},
	} {
		f, vm := collectedHeap()
		if c.before != nil {
			c.before(f)
		}
		since := vm.heapMoment()
		if c.then != nil {
			c.then(f)
		}
		if got := vm.nothingMoved(since); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	f, vm := collectedHeap()
	f.put64(0x4000, 0)
	if !vm.nothingMoved(vm.heapMoment()) {
		t.Error("a JVM without a heap yet is not quiet")
	}
}

// busyHeap has one more collection at each read.
type busyHeap struct {
	*fakeTarget
	collections uint32
}

func (b *busyHeap) ReadMany(rs []process.Range) {
	b.collections++
	b.put32(heapAt+0x10, b.collections)
	b.fakeTarget.ReadMany(rs)
}

// TestWaitsWhileObjectsMove: while a collection moves objects, goprof reports nothing that it found through references
// in the heap.
func TestWaitsWhileObjectsMove(t *testing.T) {
	f, vm := collectedHeap()
	snap := process.Snapshot{SideAddr: threadAt, Side: make([]byte, 8)}
	read := func(target process.Target) process.JavaWait {
		w := &Waits{vm: vm, classes: true}
		return w.ReadFrom(target).Read(&snap, arch.CallFutex)
	}
	if j := read(f); j.Moving {
		t.Errorf("%+v with no collection", j)
	}
	if j := read(&busyHeap{fakeTarget: f}); !j.Moving {
		t.Errorf("%+v while one collection follows the other", j)
	}
	f.put(heapAt+0x20, 1)
	if j := read(f); !j.Moving {
		t.Errorf("%+v in a collection", j)
	}
}
