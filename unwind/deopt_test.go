package unwind

import (
	"testing"

	"goprof/process"
	"goprof/profile"
	"goprof/vmstructs"
)

// TestDeoptBlobBetweenCalls: the frame of the deoptimisation blob has its size only in a call. Elsewhere the word at
// that distance may be the return address of any lower frame, and the frames in between would be missing.
func TestDeoptBlobBetweenCalls(t *testing.T) {
	manyWalks(t, 50, func(t *testing.T, w *Walker, snap *process.Snapshot, stack *profile.Stack) (tried int) {
		for k := 1; k < len(stack.Frames); k++ {
			f := &stack.Frames[k]
			size := f.SP - snap.SP
			if ret, ok := w.slot(f.SP, -1); !ok || ret != f.PC || !w.compiledReturn(ret) || stack.Frames[k-1].SP == f.SP ||
				size < 16 {
				continue
			}
			b := &vmstructs.Blob{Kind: vmstructs.Deopt, Name: "DeoptimizationBlob", Begin: 8, End: 4096,
				FrameSize: int(size / 8)}
			for _, exact := range []bool{false, true} {
				w.snap, w.out = snap, new(profile.Stack)
				w.begin()
				w.cur.pc, w.cur.exact = 64, exact
				why := w.stepDeopt(b)
				if !exact && (why != profile.Whole || w.cur.pc != f.PC) {
					t.Fatalf("in a call: %v, %#x", why, w.cur.pc)
				}
				if exact && why != profile.Deoptimizing {
					t.Fatalf("between calls: %v, %#x", why, w.cur.pc)
				}
			}
			return 1
		}
		return 0
	})
}
