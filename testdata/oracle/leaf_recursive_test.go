//go:build linux

package oracle

import (
	"slices"
	"testing"
	"time"

	"goprof/profile"
	"goprof/sampler/look"
	"goprof/testdata/jvmtest"
)

// TestRecursive: a loop that is inlined into a recursive method is not one more call of that method. The code
// has more polls than calls, with full records and without.
func TestRecursive(t *testing.T) {
	t.Parallel()
	const depth, samples = 100, 400
	// -Xbatch: nothing goes on before it is compiled, so that all is when the bottom has been reached.
	inline := []string{"-Xbatch", "-XX:CompileCommand=quiet", "-XX:CompileCommand=inline,truth.Recursive::work"}
	full := []string{"-XX:+UnlockDiagnosticVMOptions", "-XX:+DebugNonSafepoints"}
	jvmtest.ForNewestJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		type mode struct {
			name  string
			flags []string
		}
		for _, mode := range jvmtest.Drawn(t, 2, []mode{{"c2", nil}, {"c1", []string{"-XX:TieredStopAtLevel=1"}},
			{"c2-full", full}, {"c1-full", append(slices.Clip(full), "-XX:TieredStopAtLevel=1")}}) {
			t.Run(mode.name, func(t *testing.T) {
				jvm := jvmtest.Start(t, jdk, "truth.Recursive", append(slices.Clip(mode.flags), inline...)...)
				for len(jvm.Command("rounds")[0]) < 3 { // a hundred
					time.Sleep(10 * time.Millisecond)
				}
				in, inlined, right := 0, 0, 0
				var wrong *profile.Stack
				each := func(_ *look.Look, st *profile.Stack) {
					down := count(st, "truth.Recursive.down")
					if down < depth+1 {
						return // on its way down, or another thread
					}
					in++
					if st.Frames[0].Kind == profile.Inlined {
						inlined++
					}
					if down == depth+1 && count(st, "truth.Recursive.work") == 1 && st.Frames[0].Func.Name == "truth.Recursive.work" {
						right++
					} else if wrong == nil {
						wrong = &profile.Stack{Frames: slices.Clone(st.Frames)}
					}
				}
				s := attach(t, jvm.PID)
				for n := 0; n < 20 && (in < samples/2 || inlined < samples/2); n++ { // others than this thread may have the CPUs
					sample(t, s, time.Millisecond, samples/2, each)
				}
				t.Logf("%d at the bottom, %d in an inlined method, %d right", in, inlined, right)
				if in < samples/2 || inlined < samples/2 || in-right > atMost(0.01, in) {
					t.Errorf("of %d samples %d at the bottom, %d in an inlined method, %d right", samples, in, inlined, right)
				}
				if t.Failed() && wrong != nil {
					t.Logf("the first wrong one: %d times down, %d times work", count(wrong, "truth.Recursive.down"),
						count(wrong, "truth.Recursive.work"))
					for _, f := range wrong.Frames[:3] {
						t.Logf("  %v %s:%d", f.Kind, f.Func.Name, f.Line)
					}
				}
			})
		}
	})
}

// count is how often a method stands in a stack.
func count(st *profile.Stack, method string) (n int) {
	for _, f := range st.Frames {
		if f.Func.Name == method {
			n++
		}
	}
	return n
}
