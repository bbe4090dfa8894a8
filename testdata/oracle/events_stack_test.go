//go:build linux

package oracle

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"goprof/profile"
	"goprof/sampler"
	"goprof/sampler/look"
	"goprof/testdata/jvmtest"
)

// TestEventStacks: truth.Encoded asks for native memory, and the size says by which methods. Each stack is held against
// that, frame by frame.
func TestEventStacks(t *testing.T) {
	usual := 400
	if longForm {
		usual = 20_000
	}
	want := envNumber("GOPROF_EVENT_STACKS", usual)
	jvmtest.ForNewestJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		jvm := jvmtest.Start(t, jdk, "truth.Encoded", "-XX:CompileCommand=quiet",
			"-XX:CompileCommand=exclude,truth/Encoded.interpreted", "-XX:MaxDirectMemorySize=200m")
		s := attach(t, jvm.PID)
		name := "libjvm:Unsafe_AllocateMemory0"
		if jdk.Version == 8 {
			name = "libjvm:Unsafe_AllocateMemory"
		}
		plan := findEvent(t, s, name, 0)
		sampling := s.EventSampling(plan)
		ctx, cancel := context.WithTimeout(context.Background(), jvmtest.Slow(5*time.Minute))
		defer cancel()
		size := s.Process.CPU().Probe.Args[2]
		seen, cut, unproven, bad := -want, 0, 0, 0 // as many again come first, while the program is being compiled
		var st profile.Stack
		each := func(snap *look.Look) {
			if seen >= want {
				cancel()
				return
			}
			sampling.Walk(snap, &st)
			if !sampling.Proven(snap) {
				if seen >= 0 {
					unproven++
				}
				return
			}
			if seen++; st.Truncated != profile.Whole {
				if seen > 0 {
					cut++
				}
				return
			}
			if why := encodedStack(&st, uint32(snap.Regs[size])); why != "" {
				if bad++; bad < 4 {
					t.Errorf("%s\n%s", why, describe(s, &snap.Snapshot, &st))
				}
			}
		}
		if _, err := sampling.Run(ctx, sampler.Config{Interval: time.Second}, each); err != nil {
			t.Fatal(err)
		}
		t.Logf("%d stacks, %d cut, %d wrong; %d stale", seen, cut, bad, unproven)
		if seen < want || cut > atMost(1.0/200, seen) || bad > 0 || longForm && unproven*4 > seen {
			t.Errorf("%d stacks of %d, %d cut, %d wrong; %d stale", seen, want, cut, bad, unproven)
		}
	})
}

// encodedStack says what is wrong with a stack of truth.Encoded that asked for so much.
func encodedStack(st *profile.Stack, code uint32) (why string) {
	var got []string
	for i := range st.Frames {
		if name, ok := strings.CutPrefix(st.Frames[i].Func.Name, "truth.Encoded."); ok {
			if st.Frames[i].Func.Name == "truth.Encoded.run" {
				got = append(got, "run")
				break
			}
			got = append(got, name)
		}
	}
	if want := encodedMethods(code); !slices.Equal(got, want) {
		return fmt.Sprintf("%d: %v, not %v", code, got, want)
	}
	return ""
}

// encodedMethods are the methods of truth.Encoded that a number stands for, the innermost first.
func encodedMethods(code uint32) (methods []string) {
	methods = append(methods, "run", "next")
	rest := code
	for range 4 + code%17 {
		rest = rest*1103515245 + 12345
		methods = append(methods, [4]string{"compiled", "interpreted", "small", "large"}[rest>>16&3], "next")
	}
	methods = append(methods, "leaf")
	slices.Reverse(methods)
	return methods
}
