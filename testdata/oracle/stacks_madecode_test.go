//go:build linux

package oracle

import (
	"slices"
	"testing"
	"time"

	"goprof/process"
	"goprof/profile"
	"goprof/sampler/look"
	"goprof/testdata/jvmtest"
)

// TestMadeCode: code that a native library has made while it runs, as V8 and wasmtime do, is one named gap. The stack
// goes on at the Java method that called the library. Functions of files above it keep their names.
func TestMadeCode(t *testing.T) {
	t.Parallel()
	lib := buildNative(t, "madecode.c", "libmadecode.so", withCFI...)
	gap := "[no unwind info: " + process.JITCode + "]"
	jvmtest.ForNewestJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		jvm := jvmtest.Start(t, jdk, "truth.MadeCode", "--", lib.path)
		s := attach(t, jvm.PID)
		onTop, below, cut := 0, 0, 0
		each := func(_ *look.Look, st *profile.Stack) {
			var names []string
			for i := range st.Frames {
				names = append(names, st.Frames[i].Func.Name)
			}
			at := slices.Index(names, gap)
			switch {
			case st.Truncated == profile.NoUnwindInfo && at == len(names)-1 && at >= 0:
				cut++ // the thread was about to note its Java frame, or had just taken the note back
			case st.Truncated != profile.Whole:
				t.Errorf("%v: %v", st.Truncated, names)
			case at == 0 && names[1] == "truth.MadeCode.spin":
				onTop++
			case at == 0 && names[1] == "truth.MadeCode.callBack": // just before or behind the call of inFile
			case at == 1 && names[0] == "inFile" && names[2] == "truth.MadeCode.callBack":
				below++
			case at >= 0:
				t.Errorf("code that was made is in no place for it: %v", names)
			}
		}
		for n := 0; n < 20 && (onTop < 20 || below < 20); n++ { // at first the JVM compiles
			sample(t, s, time.Millisecond, 100, each)
		}
		t.Logf("%d stacks in code that was made, %d in C that such code called, %d cut", onTop, below, cut)
		if onTop < 20 || below < 20 || cut > atMost(1.0/50, onTop+below) {
			t.Error("too few are whole")
		}
	})
}
