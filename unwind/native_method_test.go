package unwind

import (
	"testing"

	"goprof/profile"
)

// TestContendedNativeMethod: a native method that waits for its monitor has pushed its arguments, so its frame is
// larger than recorded. The word at the recorded size is not a return address, but a saved frame pointer, an argument
// or a 0. That 0 does not mark a thread's root.
func TestContendedNativeMethod(t *testing.T) {
	files := recordings(t, "contended")
	if len(files) != 2 {
		t.Fatalf("%d recordings", len(files))
	}
	for _, file := range files {
		rec, w := recorded(t, file)
		callers := map[string]int{}
		for i, snap := range rec.Snapshots {
			var stack profile.Stack
			rec.Step(i)
			w.Walk(snap, &stack)
			if stack.Truncated != profile.Whole || stack.Frames[len(stack.Frames)-1].Kind != profile.Native {
				t.Errorf("%s: %v after %d frames", file, stack.Truncated, len(stack.Frames))
			}
			for k := range stack.Frames[:len(stack.Frames)-1] {
				if stack.Frames[k].Kind == profile.NativeMethod {
					callers[stack.Frames[k].Func.Name+" < "+stack.Frames[k+1].Func.Name]++
				}
			}
		}
		if len(callers) != 2 || callers["truth.Contended.ofClass < truth.Contended.call"] != 1 ||
			callers["truth.Contended.ofInstance < truth.Contended.call"] != 1 {
			t.Errorf("%s: %v", file, callers)
		}
	}
}
