//go:build linux

package oracle

import (
	"path/filepath"
	"strings"
	"testing"

	"goprof/profile"
	"goprof/session"
	"goprof/testdata/ctest"
	"goprof/testdata/jvmtest"
)

// TestThrowing stops a thread while an exception goes through interpreted and compiled methods in
// turns. Between two methods, when the VM is asked where the caller handles it, the interpreted one's
// frame has gone, and the frame pointer is the caller's: if that is compiled, anything.
func TestThrowing(t *testing.T) {
	t.Parallel()
	maxStops, enough := ctest.Rounds(20_000), ctest.Rounds(30)
	jvmtest.ForEachJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		if !hasSymbols(jdk) {
			t.Skip("libjvm.so has no symbols by which the moment can be told")
		}
		path := filepath.Join(t.TempDir(), "shadow")
		jvm := jvmtest.Start(t, jdk, "truth.Throwing", "-XX:CompileCommand=quiet",
			"-XX:CompileCommand=exclude,truth/Throwing.interpreted", "--", path)
		shadow, tid := oneShadowThread(t, path)
		s := attach(t, jvm.PID)
		th, _ := s.Thread(tid)
		count := &shadowCount{reasons: map[profile.Reason]int{}, code: map[[2]uint64]map[string]bool{}}
		between := 0
		for count.stops < maxStops && between < enough {
			if throwingStop(t, s, shadow, tid, th, count) {
				between++
			}
		}
		t.Logf("%v; %d stops between two methods", count, between)
		if n := count.verdicts[jvmtest.Mismatch]; n > 0 {
			t.Errorf("%d mismatches", n)
		}
		if between == 0 || count.truncated > atMost(1.0/200, count.stops) {
			t.Errorf("%d stops between two methods, %d of %d stacks are truncated", between, count.truncated, count.stops)
		}
	})
}

// throwingStop stops once, and tells whether that was between two methods.
func throwingStop(t *testing.T, s *session.Session, shadow *jvmtest.Shadow, tid int, th session.Thread,
	count *shadowCount) (between bool) {
	t.Helper()
	own, snap := stopShadow(t, s, shadow, tid, th, func() {})
	if !own.Running {
		t.Fatal("the program's thread has ended")
	}
	var st profile.Stack
	s.Walker.Walk(snap, &st)
	count.stops++
	between = asksForHandler(&st)
	if st.Truncated != profile.Whole {
		count.truncated++
		count.reasons[st.Truncated]++
		if between {
			t.Errorf("cut between two methods: %s", describe(s, snap, &st))
		}
		return between
	}
	verdict, why := shadow.Judge(own.Frames, count.walkOf(s, shadow, &st))
	if count.verdicts[verdict]++; verdict == jvmtest.Mismatch && count.verdicts[verdict] < 4 {
		t.Errorf("seed %d: %v\n%s\nshadow:\n%s", own.Seed, why, describe(s, snap, &st), shadowText(own))
	}
	return between
}

// asksForHandler: SharedRuntime::exception_handler_for_return_address is among the native
// frames on top. Compiled code calls it, too.
func asksForHandler(st *profile.Stack) bool {
	for i := range st.Frames {
		if st.Frames[i].Kind != profile.Native {
			return false
		}
		if strings.Contains(st.Frames[i].Func.Name, "exception_handler_for_return_address") {
			return true
		}
	}
	return false
}
