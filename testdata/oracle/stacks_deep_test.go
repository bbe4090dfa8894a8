//go:build linux

package oracle

import (
	"fmt"
	"testing"
	"time"

	"goprof/profile"
	"goprof/sampler/look"
	"goprof/sampler/ptrace"
	"goprof/session"
	"goprof/testdata/jvmtest"
	"goprof/unwind"
)

// deepLooks are stacks of known depth, and how many frames a walk may have for them.
var deepLooks = []struct {
	method       string
	calls, depth int
}{
	{"down", 1_000, 0},
	{"wideDown", 1_900, 0},
	{"down", 100_000, 0},
	{"down", 100_000, 1 << 20},
	{"wideDown", 30_000, 1 << 16},
}

const deepThread = "deep" // its name

// deepCount is what became of the looks at one program.
type deepCount struct{ looks, complete, wrong int }

// TestDeepStacks: a stack is whole however deep it is, as long as it is not deeper than asked for.
func TestDeepStacks(t *testing.T) {
	t.Parallel()
	jvmtest.ForEachJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		// On a busy machine a thread may not stop in time now and then; then there is no stack.
		if count := countDeep(t, jdk, []string{"-Xss1g"}, 5); count.complete*10 < count.looks*8 {
			t.Errorf("%+v", count)
		}
	})
}

// TestDeepStacksAreCutShort: whoever asks for no deeper stacks than others copies no more of them.
func TestDeepStacksAreCutShort(t *testing.T) {
	t.Parallel()
	jvmtest.ForNewestJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		jvm := jvmtest.Start(t, jdk, "truth.Deep", "-Xss1g")
		jvm.Command("down 100000")
		deep := 0
		got := sample(t, attach(t, jvm.PID), time.Millisecond, 100, func(snap *look.Look, st *profile.Stack) {
			if len(snap.Stack) > ptrace.DefaultStackLimit {
				t.Errorf("%d bytes of stack were copied", len(snap.Stack))
			}
			if st.Truncated == profile.TooDeep {
				deep++
			}
		})
		// Threads of the JVM that were born just now are among them, of which nothing was known yet.
		taken := int(got.stats.Taken) // what a busy machine lets be lost was not copied
		t.Logf("%d samples, %d whole, %d too deep", taken, got.whole, deep)
		if deep == 0 || taken-deep-got.whole-got.stale > atMost(1.0/50, taken) {
			t.Errorf("%d samples, %d whole, %d too deep", taken, got.whole, deep)
		}
	})
}

// countDeep looks so often at each of the depths.
func countDeep(t *testing.T, jdk jvmtest.JDK, flags []string, looks int) (count deepCount) {
	t.Helper()
	jvm := jvmtest.Start(t, jdk, "truth.Deep", flags...)
	s := attach(t, jvm.PID)
	for _, look := range deepLooks {
		jvm.Command(fmt.Sprintf("%s %d", look.method, look.calls))
		s.Walker.MaxDepth = unwind.DefaultDepth
		for i := range looks {
			threads, err := s.Dump(session.DumpOptions{Depth: look.depth})
			if err != nil {
				t.Fatal(err)
			}
			count.looks++
			why, lost := judgeDeep(threads, "truth.Deep."+look.method, look.calls, s.Walker.MaxDepth)
			if why == "" {
				count.complete++
			} else if lost {
				t.Log(why)
			} else if count.wrong++; count.wrong < 4 {
				t.Errorf("%d %s, at most %d frames: %s", look.calls, look.method, s.Walker.MaxDepth, why)
			}
			pause(i)
		}
	}
	return count
}

// judgeDeep says what is wrong with the stack of Deep's thread, or why it has none. It may be in bottom, with what the
// JVM does on top of it.
func judgeDeep(threads []profile.ThreadDump, method string, calls, depth int) (why string, lost bool) {
	for _, th := range threads {
		if th.Name != deepThread {
			continue
		}
		st := &th.Stack
		seen := 0
		for _, f := range st.Frames {
			if f.Func.Name == method {
				seen++
			}
		}
		others := len(st.Frames) - seen
		switch {
		case th.Err != "":
			return th.Err, true
		case calls+32 > depth:
			if st.Truncated != profile.TooDeep || len(st.Frames) != depth || others > 16 {
				return fmt.Sprintf("%v, %d frames, %d of the method", st.Truncated, len(st.Frames), seen), false
			}
		case st.Truncated != profile.Whole || seen != calls+1 || others > 24:
			return fmt.Sprintf("%v, %d frames, %d of the method", st.Truncated, len(st.Frames), seen), false
		}
		return "", false
	}
	return "no thread " + deepThread, false
}

// matrixDeep counts as complete what ends where it should: at the root, or at --depth.
func matrixDeep(t *testing.T, jdk jvmtest.JDK, flags []string, stops int) string {
	count := countDeep(t, jdk, flags, max(stops/100, 5))
	return fmt.Sprintf("%d %d %d", count.looks, count.complete, count.wrong)
}
