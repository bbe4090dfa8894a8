package naming

import (
	"testing"

	"goprof/profile"
)

// TestLocksAndFolds: if other frames are folded, a lock stays at the frame that took it.
func TestLocksAndFolds(t *testing.T) {
	frame := func(name string, sp uint64) profile.Frame {
		return profile.Frame{Func: &profile.Func{Name: name}, Kind: profile.Interpreted, SP: sp}
	}
	stack := profile.Stack{Frames: []profile.Frame{frame("a.B.leaf", 1),
		frame("java.lang.reflect.Method.invoke", 2), frame("a.B.middle", 3),
		frame("java.lang.invoke.LambdaForm$MH.invoke", 4), frame("java.lang.invoke.LambdaForm$DMH.invokeStatic",
			5), frame("a.B.root", 6)}}
	names := make([]string, len(stack.Frames))
	threads := []profile.ThreadDump{{Stack: stack}}
	for i := range stack.Frames {
		names[i] = stack.Frames[i].Func.Name
		threads[0].Holds = append(threads[0].Holds, profile.HeldLock{Frame: i})
	}
	threads[0].Holds = append(threads[0].Holds, profile.HeldLock{Frame: -1}, profile.HeldLock{Frame: 99})
	FoldDump(&profile.Dump{Threads: threads})
	if n := len(threads[0].Stack.Frames); n != 5 {
		t.Fatalf("%d frames are left, not 5", n)
	}
	for i, h := range threads[0].Holds {
		folded := i == 1 || i == 3 || i == 4 || i > 5
		if folded != (h.Frame < 0) {
			t.Errorf("lock %d is at frame %d", i, h.Frame)
		} else if h.Frame >= 0 && threads[0].Stack.Frames[h.Frame].Func.Name != names[i] {
			t.Errorf("lock %d went from %s to %s", i, names[i], threads[0].Stack.Frames[h.Frame].Func.Name)
		}
	}
}

// TestHideInternalOfCore: the frame that got a signal stays the same if frames above it are folded.
func TestHideInternalOfCore(t *testing.T) {
	frame := func(name string, kind profile.Kind) profile.Frame {
		return profile.Frame{Func: &profile.Func{Name: name}, Kind: kind, BCI: -1}
	}
	frames := []profile.Frame{frame("a.B.work", profile.Interpreted),
		frame("sun.reflect.NativeMethodAccessorImpl.invoke0", profile.NativeMethod),
		frame("sun.reflect.NativeMethodAccessorImpl.invoke", profile.Interpreted),
		frame("sun.reflect.DelegatingMethodAccessorImpl.invoke", profile.Interpreted),
		frame("java.lang.reflect.Method.invoke", profile.Interpreted), frame("a.B.main", profile.Interpreted)}
	d := &profile.Dump{Threads: []profile.ThreadDump{{Stack: profile.Stack{Frames: frames}}},
		Core: &profile.Core{Signal: &profile.Signal{Frame: 0}, Cause: &profile.Signal{Frame: 5}}}
	FoldDump(d)
	now := d.Threads[0].Stack.Frames
	if len(now) >= 6 {
		t.Fatalf("nothing was folded: %d frames", len(now))
	}
	for _, c := range []struct {
		at   int
		want string
	}{{d.Core.Signal.Frame, "a.B.work"}, {d.Core.Cause.Frame, "a.B.main"}} {
		if c.at < 0 || c.at >= len(now) || now[c.at].Func.Name != c.want {
			t.Errorf("frame %d, want %s", c.at, c.want)
		}
	}
}
