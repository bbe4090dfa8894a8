//go:build linux

package examine

import (
	"context"
	"slices"

	"goprof/heap"
	"goprof/profile"
)

// fullEnough is how full a heap is, at least, of which it is counted what fills it, though nothing was collected.
const fullEnough = 0.8

// countHeap counts what fills the heap, within the bounds of package heap, if that may matter: there were collections,
// or the heap is nearly full. No rule needs it. Why it
// could not be counted is noted.
func (x *examination) countHeap(ctx context.Context) {
	last := x.evidence.Readings[len(x.evidence.Readings)-1]
	full, _ := last.JVM.GC.Heap.Full()
	if x.evidence.Rates.Collections.Or(0) == 0 && full < fullEnough {
		return
	}
	type result struct {
		heap *profile.Heap
		err  error
	}
	counted := make(chan result, 1)
	if !x.session.Guarded(func() {
		var h *profile.Heap
		r, err := heap.NewReader(x.session.VM)
		if err == nil {
			h, err = r.Read(heap.Options{Cancel: ctx.Done()})
		}
		counted <- result{h, err}
	}) {
		x.note("the heap did not answer: what fills it is not known")
		return
	}
	r := <-counted
	if r.err != nil {
		x.note("what fills the heap is not known: " + heap.Why(r.err))
		return
	}
	x.evidence.Heap = r.heap
	if slices.ContainsFunc(r.heap.Parts, func(p profile.HeapPart) bool { return p.Used > 0 && p.Seen == 0 }) {
		for _, note := range r.heap.Notes {
			x.note("the heap: " + note)
		}
	}
}
