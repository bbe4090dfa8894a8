package postmortem

import (
	"testing"

	"goprof/profile"
)

// TestFramesAreBounded: all threads of a malicious core may have the same long stack.
func TestFramesAreBounded(t *testing.T) {
	d := &dump{kept: maxFrames - 5}
	stack := &profile.Stack{Frames: make([]profile.Frame, 4)}
	var first, second profile.ThreadDump
	if !d.keep(&first, stack) || len(first.Stack.Frames) != 4 || first.Err != "" {
		t.Errorf("%+v", first)
	}
	if d.keep(&second, stack) || len(second.Stack.Frames) != 0 || second.Err == "" {
		t.Errorf("%+v", second)
	}
	stack.Frames[0].Line = 7
	if first.Stack.Frames[0].Line != 0 {
		t.Error("a stack shares its frames with the next")
	}
}
