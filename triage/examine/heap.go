//go:build linux

package examine

import (
	"context"
	"errors"
	"slices"

	"goprof/heap"
	"goprof/process"
	"goprof/profile"
	"goprof/session"
)

// fullEnough is the fill from which on the heap's classes are counted even if there was no collection.
const fullEnough = 0.8

// countHeap counts the classes that fill the heap, within the limits of package heap. It does so only if there were
// collections, or if the heap is nearly full. No rule needs the result. If counting fails, the reason is noted.
func (x *examination) countHeap(ctx context.Context) {
	last := x.evidence.Readings[len(x.evidence.Readings)-1]
	full, _ := last.JVM.GC.Heap.Full()
	if x.evidence.Rates.Collections.Or(0) == 0 && full < fullEnough {
		return
	}
	h, err := session.Ask(x.session, func() (h *profile.Heap, err error) {
		r, err := heap.NewReader(x.session.VM)
		if err == nil {
			h, err = r.Read(heap.Options{Cancel: ctx.Done(), Life: x.session.Life()})
		}
		return h, err
	})
	switch {
	case errors.Is(err, process.ErrSilent):
		x.note("the heap did not answer: what fills it is not known")
		return
	case err != nil:
		x.note("what fills the heap is not known: " + heap.Why(err))
		return
	}
	x.evidence.Heap = h
	if slices.ContainsFunc(h.Parts, func(p profile.HeapPart) bool { return p.Used > 0 && p.Seen == 0 }) {
		for _, note := range h.Notes {
			x.note("the heap: " + note)
		}
	}
}
