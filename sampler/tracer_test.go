//go:build linux

package sampler

import (
	"bytes"
	"testing"
	"time"

	"goprof/process"
)

func TestLookAtSpinningThread(t *testing.T) {
	p := run1(t, cSpin)
	pad := uint64(p.number(t))
	onTracer(t, p.pid, func(tr *Tracer) {
		snap, o := lookPatiently(tr, p.pid, 0)
		if o != Taken {
			t.Fatalf("%v %v", o, tr.Err())
		}
		if snap.SP != snap.Regs[thisCPU().SP] || snap.SP > pad || snap.SP%8 != 0 {
			t.Errorf("sp %#x, register %#x, pad at %#x", snap.SP, snap.Regs[thisCPU().SP], pad)
		}
		at := pad - snap.SP
		if uint64(len(snap.Stack)) < at+16384 {
			t.Fatalf("%d bytes of stack do not reach the pad at %d", len(snap.Stack), at)
		}
		if !bytes.Equal(snap.Stack[at:at+16384], bytes.Repeat([]byte{0x5a}, 16384)) {
			t.Error("the copy is not what the program wrote")
		}
		if snap.TID != p.pid || snap.When == 0 {
			t.Errorf("tid %d, when %d", snap.TID, snap.When)
		}
		if tr.Pauses.Count() != 1 {
			t.Errorf("%d pauses", tr.Pauses.Count())
		}
	})
	eventually(t, "runs on", func() bool { return threadState(p.pid, p.pid) == 'R' })
}

func TestStackLimits(t *testing.T) {
	p := run1(t, cSpin)
	pad := uint64(p.number(t))
	top := pad + 16384
	onTracer(t, p.pid, func(tr *Tracer) {
		snap, o := lookPatiently(tr, p.pid, top)
		if o != Taken || snap.Cut || snap.SP+uint64(len(snap.Stack)) != top {
			t.Errorf("known top: %v, %d bytes, cut %v", o, len(snap.Stack), snap.Cut)
		}
		tr.StackLimit = 4096
		snap, o = lookPatiently(tr, p.pid, top)
		if o != Taken || !snap.Cut || len(snap.Stack) != 4096 {
			t.Errorf("small limit: %v, %d bytes, cut %v", o, len(snap.Stack), snap.Cut)
		}
		tr.StackLimit = DefaultStackLimit
		// A top far above the real one: the copy ends where the mapping does.
		snap, o = lookPatiently(tr, p.pid, top+(64<<20))
		if o != Taken || snap.Cut || len(snap.Stack) < 16384 || len(snap.Stack) >= DefaultStackLimit {
			t.Errorf("top beyond the mapping: %v, %d bytes, cut %v", o, len(snap.Stack), snap.Cut)
		}
		// A top below sp, as on another stack, counts as unknown.
		snap, o = lookPatiently(tr, p.pid, 4096)
		if o != Taken || len(snap.Stack) < 16384 {
			t.Errorf("top below sp: %v, %d bytes", o, len(snap.Stack))
		}
		// Nor is it the thread's own stack if that lies above sp: what is between is not copied.
		snap, o = lookAt(tr, p.pid, Hint{StackLow: top + (32 << 10), StackTop: top + (64 << 20)})
		if o != Taken || len(snap.Stack) > unknownStack {
			t.Errorf("below its own stack: %v, %d bytes", o, len(snap.Stack))
		}
	})
}

func TestLookDoesNotAllocate(t *testing.T) {
	p := run1(t, cSpin)
	top := uint64(p.number(t)) + 16384
	onTracer(t, p.pid, func(tr *Tracer) {
		snap := new(process.Snapshot)
		taken := 0
		look := func() {
			o := tr.Look(p.pid, Hint{StackTop: top}, snap)
			for o == Pending {
				time.Sleep(50 * time.Microsecond)
				if _, got, ok := tr.Collect(); ok {
					o = got
				}
			}
			if o == Taken {
				taken++
			}
		}
		look()
		if n := testing.AllocsPerRun(1000, look); n != 0 {
			t.Errorf("%v allocations for each look", n)
		}
		if taken < 1000 {
			t.Errorf("only %d of 1002 looks were taken", taken)
		}
	})
}

func BenchmarkLook(b *testing.B) {
	p := run1(b, cSpin)
	top := uint64(p.number(b)) + 16384
	onTracer(b, p.pid, func(tr *Tracer) {
		snap := new(process.Snapshot)
		b.ReportAllocs()
		for b.Loop() {
			o := tr.Look(p.pid, Hint{StackTop: top}, snap)
			for o == Pending {
				if _, got, ok := tr.Collect(); ok {
					o = got
				}
			}
		}
		b.ReportMetric(float64(tr.Pauses.Quantile(0.5).Nanoseconds()), "pause-p50-ns")
		b.ReportMetric(float64(tr.Pauses.Quantile(0.99).Nanoseconds()), "pause-p99-ns")
	})
}
