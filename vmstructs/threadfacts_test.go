package vmstructs

import (
	"errors"
	"testing"
)

// TestThreadFacts: the facts of a java.lang.Thread. The JDK's own threads are recognised by their group. If a collector
// moves an object during the reading, there are no facts.
func TestThreadFacts(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		th, _ := w.namedThread("Common-Cleaner")
		object := th.obj
		if w.l.thread.objHandle {
			object, _ = w.vm.wideOopAt(th.obj)
		}
		if f, err := w.vm.ThreadFacts(th); err != nil || f != (ThreadFacts{}) {
			t.Fatalf("without the fields: %+v %v", f, err)
		}
		j := &w.vm.java
		j.tid, j.facts = 32, factFields{daemon: 40, priority: 44, group: 48, parent: 8, groupName: 16}
		w.put64(object+32, 4711)
		w.put(object+40, 1)
		w.put32(object+44, 8)
		top, main, innocuous := w.group(0, "system"), uint64(0), uint64(0)
		main, innocuous = w.group(top, "main"), w.group(top, innocuousGroup)
		below := w.group(main, innocuousGroup)
		for group, system := range map[uint64]bool{0: false, top: true, main: false, innocuous: true, below: false} {
			w.put64(object+48, group)
			want := ThreadFacts{ID: 4711, Daemon: true, Priority: 8, System: system}
			if f, err := w.vm.ThreadFacts(th); err != nil || f != want {
				t.Errorf("group %#x: %+v %v, not %+v", group, f, err, want)
			}
		}
		w.put32(object+44, 99)
		if f, _ := w.vm.ThreadFacts(th); f.Priority != 0 {
			t.Errorf("a priority of %d", f.Priority)
		}
		w.onRead = func(addr uint64) {
			if addr == object+44 {
				w.put64(object+48, top)
			}
		}
		w.put64(object+48, main)
		if f, err := w.vm.ThreadFacts(th); !errors.Is(err, ErrMoved) || f != (ThreadFacts{}) {
			t.Errorf("of a thread that changes meanwhile: %+v %v", f, err)
		}
	})
}

func (w *world) group(parent uint64, name string) uint64 {
	j := &w.vm.java
	group, str, chars := w.alloc(64), w.alloc(64), w.alloc(64)
	w.put64(group+j.facts.parent, parent)
	w.put64(group+j.facts.groupName, str)
	w.put64(str+j.value, chars)
	w.put32(chars+j.heap.arrayLength, uint32(len(name)))
	w.put(chars+j.heap.arrayData, []byte(name)...)
	return group
}
