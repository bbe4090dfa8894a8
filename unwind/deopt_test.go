package unwind

import (
	"testing"

	"goprof/profile"
	"goprof/vmstructs"
)

// TestDeoptBlobBetweenCalls: only in a call does the frame of the deoptimisation blob have its
// size. Elsewhere the word at that distance may be the return address of any frame further up,
// and the frames between would be missed.
func TestDeoptBlobBetweenCalls(t *testing.T) {
	files := recordings(t, "walks")
	for _, file := range files {
		rec, w := recorded(t, file)
		tried := 0
		for i, snap := range rec.Snapshots {
			rec.Step(i)
			var stack, again profile.Stack
			w.Walk(snap, &stack)
			for k := 1; k < len(stack.Frames); k++ {
				f := &stack.Frames[k]
				size := f.SP - snap.SP
				if ret, ok := w.slot(f.SP, -1); !ok || ret != f.PC || !w.compiledReturn(ret) || stack.Frames[k-1].SP == f.SP || size < 16 {
					continue
				}
				b := &vmstructs.Blob{Kind: vmstructs.Deopt, Name: "DeoptimizationBlob", Begin: 8, End: 4096, FrameSize: int(size / 8)}
				for _, exact := range []bool{false, true} {
					w.snap, w.out = snap, &again
					w.begin()
					w.cur.pc, w.cur.exact = 64, exact
					why := w.stepDeopt(b)
					if !exact && (why != profile.Whole || w.cur.pc != f.PC) {
						t.Fatalf("%s: in a call: %v, %#x", file, why, w.cur.pc)
					}
					if exact && why != profile.Deoptimizing {
						t.Fatalf("%s: between calls: %v, %#x", file, why, w.cur.pc)
					}
				}
				tried++
				break
			}
		}
		if tried < 50 {
			t.Errorf("%s: only %d stacks", file, tried)
		}
	}
}
