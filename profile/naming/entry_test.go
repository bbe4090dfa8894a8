package naming

import (
	"testing"

	"goprof/profile"
)

func TestThreadEntry(t *testing.T) {
	java := profile.Frame{Func: &profile.Func{Name: "java.lang.Thread.run"}, Kind: profile.Interpreted}
	stub := profile.Frame{Func: &profile.Func{Name: CallStub}, Kind: profile.Stub}
	native := func(module string) profile.Frame {
		return profile.Frame{Func: &profile.Func{Name: "f", Module: module}, Kind: profile.Native}
	}
	jvm, libc, own := native("/jdk/lib/server/libjvm.so"), native("/lib/libc-2.31.so"), native("/opt/libown.so")
	gap := profile.Frame{Func: &profile.Func{Name: "[no unwind info: libjvm.so]"}, Kind: profile.Gap}
	for _, row := range []struct {
		name   string
		frames []profile.Frame
		cut    profile.Reason
		want   int
	}{
		{"a thread of Java's", []profile.Frame{libc, java, stub, jvm, jvm, libc}, profile.Whole, 4},
		{"Java calls the VM, which calls Java", []profile.Frame{java, stub, jvm, java, stub, jvm}, profile.Whole, 2},
		{"a program that starts a JVM", []profile.Frame{java, stub, jvm, own, libc}, profile.Whole, 0},
		{"the root was not reached", []profile.Frame{java, stub, jvm}, profile.StackCut, 0},
		{"a gap", []profile.Frame{java, stub, gap, libc}, profile.Whole, 0},
		{"a thread without Java", []profile.Frame{jvm, jvm, libc}, profile.Whole, 0},
		{"a call stub above nothing of Java's", []profile.Frame{jvm, stub, jvm}, profile.Whole, 0},
		{"nothing but Java", []profile.Frame{java, java}, profile.Whole, 0},
		{"a frame without a function", []profile.Frame{java, {}}, profile.Whole, 0},
		{"no frames", nil, profile.Whole, 0},
	} {
		if got := WayIntoJava(&profile.Stack{Frames: row.frames, Truncated: row.cut}); got != row.want {
			t.Errorf("%s: %d, not %d", row.name, got, row.want)
		}
	}
}
