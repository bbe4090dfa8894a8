//go:build linux

package examine

import (
	"goprof/heap"
	"goprof/profile"
)

// fullEnough is how full a heap is, at least, of which it is counted what fills it, though nothing was collected.
const fullEnough = 0.8

// countHeap counts what fills the heap, within the bounds of package heap, if that may matter: there were collections,
// or the heap is nearly full. What cannot be counted is left out: no rule needs it.
func (x *examination) countHeap() {
	last := x.evidence.Readings[len(x.evidence.Readings)-1]
	full, _ := last.JVM.GC.Heap.Full()
	if x.evidence.Rates.Collections.Or(0) == 0 && full < fullEnough {
		return
	}
	counted := make(chan *profile.Heap, 1)
	if !x.session.Guarded(func() {
		var h *profile.Heap
		if r, err := heap.NewReader(x.session.VM); err == nil {
			h, _ = r.Read(heap.Options{})
		}
		counted <- h
	}) {
		x.note("the heap did not answer: what fills it is not known")
		return
	}
	x.evidence.Heap = <-counted
}
