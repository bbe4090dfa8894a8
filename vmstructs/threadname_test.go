package vmstructs

import (
	"errors"
	"testing"
)

// namedThread makes a thread. Its object, its name and the characters are at different addresses.
func (w *world) namedThread(name string) (th Thread, chars uint64) {
	j := &w.vm.java
	j.done, j.name, j.eetop, j.value, j.coder = true, 16, 24, 16, 28
	j.heap = heapModel{arrayLength: 16, arrayData: 24}
	th.Addr, th.obj = w.alloc(64), w.alloc(64)
	object, str := w.alloc(64), w.alloc(64)
	chars = w.alloc(64)
	if w.l.thread.objHandle {
		w.put64(th.obj, object)
	} else {
		th.obj = object
	}
	w.put64(object+j.eetop, th.Addr)
	w.put64(object+j.name, str)
	w.put64(str+j.value, chars)
	w.put32(chars+j.heap.arrayLength, uint32(len(name)))
	w.put(chars+j.heap.arrayData, []byte(name)...)
	return th, chars
}

// TestNameThatIsMoved: a collector moves the name, and something else gets its address, right before goprof reads the
// characters.
func TestNameThatIsMoved(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		th, chars := w.namedThread("pool-1-thread-17")
		if got, err := w.vm.ThreadName(th); got != "pool-1-thread-17" || err != nil {
			t.Fatalf("%q %v", got, err)
		}
		object := th.obj
		if w.l.thread.objHandle {
			object, _ = w.vm.wideOopAt(th.obj)
		}
		str, err := w.vm.oopAt(object + w.vm.java.name)
		if err != nil {
			t.Fatal(err)
		}
		elsewhere := w.alloc(64)
		w.onRead = func(addr uint64) {
			if addr == chars+w.vm.java.heap.arrayData {
				w.put(addr, []byte("\x00\x01what came there")...)
				w.put64(str+w.vm.java.value, elsewhere)
			}
		}
		if got, err := w.vm.ThreadName(th); !errors.Is(err, ErrMoved) {
			t.Errorf("%q %v", got, err)
		}
	})
}

// TestThreadID: the number of a thread. If a collector moves the object during the reading, there is no number.
func TestThreadID(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		th, _ := w.namedThread("main")
		object := th.obj
		if w.l.thread.objHandle {
			object, _ = w.vm.wideOopAt(th.obj)
		}
		if _, err := w.vm.ThreadID(th); !errors.Is(err, ErrMissing) {
			t.Errorf("without the field: %v", err)
		}
		w.vm.java.tid = 32
		w.put64(object+32, 4711)
		if id, err := w.vm.ThreadID(th); id != 4711 || err != nil {
			t.Errorf("%d %v", id, err)
		}
		w.onRead = func(addr uint64) {
			if addr == object+32 {
				w.put64(object+w.vm.java.eetop, 0)
			}
		}
		if id, err := w.vm.ThreadID(th); err == nil {
			t.Errorf("of an object that was moved: %d", id)
		}
	})
}

// TestNameInACollection: a collection moves objects while a name is read. The name is returned with an error that
// reports that.
func TestNameInACollection(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		th, _ := w.namedThread("main")
		w.addHeap()
		if name, err := w.vm.ThreadName(th); name != "main" || err != nil {
			t.Errorf("%q %v without a collection", name, err)
		}
		w.put(heapAt+0x20, 1)
		if name, err := w.vm.ThreadName(th); name != "main" || !errors.Is(err, ErrMoved) {
			t.Errorf("%q %v in a collection", name, err)
		}
	})
}

// TestCompilerInACollection: a compiler thread is also recognised during a collection. A thread with another name is
// not.
func TestCompilerInACollection(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		compiler, _ := w.namedThread("C2 CompilerThread0")
		w.addHeap()
		w.put(heapAt+0x20, 1)
		if !w.vm.isCompiler(compiler, 0x1230) {
			t.Error("it passes for a thread of the program")
		}
		if main, _ := w.namedThread("main"); w.vm.isCompiler(main, 0x4560) {
			t.Error("main passes for a compiler")
		}
		if len(w.vm.threads.compiler) != 0 {
			t.Errorf("a name of which nobody is sure is kept: %v", w.vm.threads.compiler)
		}
	})
}

// TestStatusInACollection: during a collection, references may lead elsewhere. goprof does not report a status that it
// found through them.
func TestStatusInACollection(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		th, _ := w.namedThread("main")
		w.addHeap()
		w.vm.java.status = 40
		if w.vm.java.holder = 0; w.vm.Collecting() {
			t.Error("a collection where none is")
		}
		before, err := w.vm.ThreadStatus(th)
		if err != nil || before == "" {
			t.Errorf("%q %v without a collection", before, err)
		}
		if _, err := w.vm.ThreadFacts(th); err != nil {
			t.Errorf("%v without a collection", err)
		}
		w.put(heapAt+0x20, 1)
		if status, err := w.vm.ThreadStatus(th); !errors.Is(err, ErrMoved) || !w.vm.Collecting() {
			t.Errorf("%q %v in a collection", status, err)
		}
		if f, err := w.vm.ThreadFacts(th); !errors.Is(err, ErrMoved) {
			t.Errorf("%+v %v in a collection", f, err)
		}
	})
}

func TestFitsComm(t *testing.T) {
	for _, c := range []struct {
		name, comm string
		want       bool
	}{
		{"worker-1", "worker-1", true},
		{"worker-1", "worker-2", false},
		{"worker-1", "worker-12", false},
		{"a-pool-of-workers-1", "a-pool-of-worke", true},
		{"a-pool-of-workers-1", "b-pool-of-worke", false},
		{"a-pool-of-workers-1", "a-pool-..rkers-1"[:15], false},
		{"a-pool-of-workers-1", "a-pool-..kers-1", true},
		{"a-pool-of-workers-1", "a-pool-..kers-2", false},
		{"a-pool-of-workers-1", "a", false},
		{"Arbeiter für Große", "Arbeiter für ", true}, // without the first half of the next character
		{"main", "java", false},
	} {
		if got := FitsComm(c.name, c.comm); got != c.want {
			t.Errorf("%q, %q: %v", c.name, c.comm, got)
		}
	}
}
