package heapdump

import (
	"errors"
	"io"
	"testing"
	"time"

	"goprof/output/hprof"
	"goprof/vmstructs"
)

// TestPlanBudget: classes that are each other's superclass, with many static fields, result in a bounded number of
// steps.
func TestPlanBudget(t *testing.T) {
	d := &dumping{classes: map[uint64]*class{}, out: hprof.NewWriter(io.Discard, time.Time{})}
	fields := make([]vmstructs.DumpField, 1<<16)
	for i := range fields {
		fields[i] = vmstructs.DumpField{Type: 'I', Static: true}
	}
	for k := range uint64(500) {
		c := &class{DumpClass: &vmstructs.DumpClass{Klass: k + 1, Super: (k+1)%500 + 1, Fields: fields}}
		d.classes[k+1], d.order = c, append(d.order, c)
		d.planOf(c)
	}
	if most := maxLooked + len(d.order)*(len(fields)+1); d.looked > most {
		t.Errorf("%d fields were looked at, want at most %d", d.looked, most)
	}
	if err := d.writeClasses(); !errors.Is(err, vmstructs.ErrTooLarge) {
		t.Errorf("%v", err)
	}
}

// TestHandleBudget: the bound counts the handles of all threads together.
func TestHandleBudget(t *testing.T) {
	d := &dumping{heap: &vmstructs.Heap{}, out: hprof.NewWriter(io.Discard, time.Time{})}
	n := 0
	for n <= maxHandles && d.handle(root{}) {
		n++
	}
	if n != maxHandles || !errors.Is(d.err, vmstructs.ErrTooLarge) {
		t.Errorf("%d handles, %v", n, d.err)
	}
}
