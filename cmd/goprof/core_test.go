package main

import (
	"testing"

	"goprof/profile"
)

// TestHideInternalOfCore: the frame in which a signal came stays the same if frames above it are folded.
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
	hideInternalOfCore(d)
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
