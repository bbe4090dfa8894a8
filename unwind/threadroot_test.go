package unwind

import (
	"testing"

	"goprof/process"
	"goprof/profile"
	"goprof/vmstructs"
)

// TestBeganHere: which frames without unwind rules are a thread's first frame. TestMusl has real frames.
func TestBeganHere(t *testing.T) {
	const sp = 0x7000
	for _, c := range []struct {
		name   string
		callee string
		above  int // bytes of stack above the frame's sp
		cut    bool
		exact  bool
		anchor uint64
		want   bool
	}{
		{name: "below HotSpot's own", callee: "thread_native_entry", above: 4096, want: true},
		{name: "at the top of the stack", callee: "libjvm.so+0x1234", above: 256, want: true},
		{name: "somewhere in the stack", callee: "work", above: 4096},
		{name: "where the copy ends, and not the stack", callee: "work", above: 256, cut: true},
		{name: "interrupted, not called from", callee: "main", above: 256, exact: true},
		{name: "a main that a library has called for Java", callee: "main", above: 4096, anchor: sp + 512},
		{name: "near the top, and Java above", callee: "work", above: 256, anchor: sp + 128},
		{name: "Java below is done with", callee: "thread_native_entry", above: 4096, anchor: sp - 512, want: true},
	} {
		w := &Walker{
			snap: &process.Snapshot{SP: sp, Stack: make([]byte, c.above), Cut: c.cut},
			out: &profile.Stack{Frames: []profile.Frame{{Func: &profile.Func{Name: c.callee}},
				{Func: &profile.Func{Name: "ld-musl-x86_64.so.1+0x5"}}}},
			anchor: vmstructs.Anchor{SP: c.anchor},
		}
		w.cur.sp, w.cur.exact, w.cur.byRules = sp, c.exact, true
		if got := w.beganHere(); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
