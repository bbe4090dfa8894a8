//go:build linux

package ptrace

import (
	"bytes"
	"testing"
	"time"

	"goprof/sampler/look"
	"goprof/testdata/ctest"
)

func TestLookAtSpinningThread(t *testing.T) {
	p := ctest.Run(t, ctest.Spin)
	pad := uint64(p.Number(t))
	onTracer(t, p.PID, func(tr *Tracer) {
		snap, o := lookPatiently(tr, p.PID, 0)
		if o != Taken {
			t.Fatalf("%v %v", o, tr.Err())
		}
		if snap.SP != snap.Regs[ctest.CPU().SP] || snap.SP > pad || snap.SP%8 != 0 {
			t.Errorf("sp %#x, register %#x, pad at %#x", snap.SP, snap.Regs[ctest.CPU().SP], pad)
		}
		at := pad - snap.SP
		if uint64(len(snap.Stack)) < at+16384 {
			t.Fatalf("%d bytes of stack do not reach the pad at %d", len(snap.Stack), at)
		}
		if !bytes.Equal(snap.Stack[at:at+16384], bytes.Repeat([]byte{0x5a}, 16384)) {
			t.Error("the copy is not what the program wrote")
		}
		if snap.TID != p.PID || snap.When == 0 {
			t.Errorf("tid %d, when %d", snap.TID, snap.When)
		}
		if tr.Pauses.Count() != 1 {
			t.Errorf("%d pauses", tr.Pauses.Count())
		}
	})
	ctest.Eventually(t, "runs on", func() bool { return ctest.State(p.PID, p.PID) == 'R' })
}

func TestStackLimits(t *testing.T) {
	p := ctest.Run(t, ctest.Spin)
	pad := uint64(p.Number(t))
	top := pad + 16384
	onTracer(t, p.PID, func(tr *Tracer) {
		snap, o := lookPatiently(tr, p.PID, top)
		if o != Taken || snap.Cut || snap.SP+uint64(len(snap.Stack)) != top {
			t.Errorf("known top: %v, %d bytes, cut %v", o, len(snap.Stack), snap.Cut)
		}
		tr.StackLimit = 4096
		snap, o = lookPatiently(tr, p.PID, top)
		if o != Taken || !snap.Cut || len(snap.Stack) != 4096 {
			t.Errorf("small limit: %v, %d bytes, cut %v", o, len(snap.Stack), snap.Cut)
		}
		tr.StackLimit = DefaultStackLimit
		// A top far above the real one: the copy ends where the mapping does.
		snap, o = lookPatiently(tr, p.PID, top+(64<<20))
		if o != Taken || snap.Cut || len(snap.Stack) < 16384 || len(snap.Stack) >= DefaultStackLimit {
			t.Errorf("top beyond the mapping: %v, %d bytes, cut %v", o, len(snap.Stack), snap.Cut)
		}
		// A top below sp, as of another stack, counts as unknown.
		snap, o = lookPatiently(tr, p.PID, 4096)
		if o != Taken || len(snap.Stack) < 16384 {
			t.Errorf("top below sp: %v, %d bytes", o, len(snap.Stack))
		}
		// The thread's own stack lies above sp, so sp is on another stack: what is between them is not copied.
		snap, o = lookAt(tr, p.PID, Hint{StackLow: top + (32 << 10), StackTop: top + (64 << 20)})
		if o != Taken || len(snap.Stack) > unknownStack {
			t.Errorf("below its own stack: %v, %d bytes", o, len(snap.Stack))
		}
	})
}

func TestLookDoesNotAllocate(t *testing.T) {
	p := ctest.Run(t, ctest.Spin)
	top := uint64(p.Number(t)) + 16384
	onTracer(t, p.PID, func(tr *Tracer) {
		snap := new(look.Look)
		taken := 0
		look := func() {
			o := tr.Look(p.PID, Hint{StackTop: top}, snap)
			for o == Pending || o == Missed { // missed: this goroutine slept for too long
				if o == Missed {
					o = tr.Look(p.PID, Hint{StackTop: top}, snap)
					continue
				}
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
	p := ctest.Run(b, ctest.Spin)
	top := uint64(p.Number(b)) + 16384
	onTracer(b, p.PID, func(tr *Tracer) {
		snap := new(look.Look)
		b.ReportAllocs()
		for b.Loop() {
			o := tr.Look(p.PID, Hint{StackTop: top}, snap)
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
