//go:build linux

package oracle

import (
	"os"
	"testing"
	"time"

	"goprof/profile"
	"goprof/sampler/look"
	"goprof/session"
	"goprof/testdata/ctest"
	"goprof/testdata/jvmtest"
	"goprof/testdata/sampletest"
	"goprof/vmstructs"
)

// TestIntrinsics samples code that no compiler made: intrinsics that move the stack pointer by
// amounts of their own, stubs that write their own return address. Every stack must reach its
// root. Only in a deoptimisation may it end: there the walk needs what the thread throws away
// a few microseconds later, and says so. GOPROF_SHOW=1 prints what did not reach its root.
func TestIntrinsics(t *testing.T) {
	t.Parallel()
	jvmtest.ForNewestJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		for _, group := range jvmtest.Drawn(t, 3, []string{"strings", "text", "arrays", "numbers", "crypto", "polls"}) {
			t.Run(group, func(t *testing.T) {
				jvm := jvmtest.Start(t, jdk, "truth.Intrinsics", "--", group)
				s := attach(t, jvm.PID)
				again(t, func(t testing.TB) { checkIntrinsics(t, s, intrinsicSamples(), group == "polls") })
			})
		}
	})
}

func intrinsicSamples() int { return envNumber("GOPROF_INTRINSICS_SAMPLES", ctest.Rounds(1000)) }

// pollRounds is how often samples are taken until some fall into the stub that threads come to
// from a poll: one in a thousand does.
const pollRounds = 30

func checkIntrinsics(t testing.TB, s *session.Session, n int, polls bool) {
	t.Helper()
	shown, inStub := 0, 0
	each := func(snap *look.Look, st *profile.Stack) {
		if st.Truncated != profile.Whole && shown < 8 && os.Getenv("GOPROF_SHOW") != "" {
			shown++
			t.Log(describe(s, &snap.Snapshot, st))
		}
		b, err := s.VM.Blob(snap.Regs[s.Process.CPU().PC])
		if err != nil || b.Kind != vmstructs.Safepoint {
			return
		}
		inStub++
		if testEngine == session.PerfEngine && st.Truncated != profile.Whole {
			return // where the poll was is in the thread's memory, and perf_event copies registers and the stack alone
		}
		if len(st.Frames) < 2 || !st.Frames[1].Kind.Java() {
			fact(t).Errorf("nobody polled: %s", describe(s, &snap.Snapshot, st))
		}
	}
	for round := 0; round == 0 || polls && inStub == 0 && round < pollRounds; round++ {
		checkReasons(t, sample(t, s, time.Millisecond, n, each), n)
	}
	t.Logf("%d in a poll's stub", inStub)
	if polls && inStub == 0 && !sampletest.MayMiss() { // of so few samples there none may
		t.Error("no sample fell into a poll's stub")
	}
}

// checkReasons fails if stacks that were copied in a pause end for another reason than a deoptimisation, or more than
// one in 200 for that. A thread of the VM that fell asleep before it was met was not stopped: its native frames may end
// early.
func checkReasons(t testing.TB, got *sampled, n int) {
	t.Helper()
	t.Logf("%d attempted, %d whole, %d stale", got.attempted(), got.whole, got.stale)
	few := atMost(1.0/200, n)
	if testEngine == session.PerfEngine {
		few = atMost(1.0/40, n) // there is no copy of what deoptimises, and programs that have just begun do that often
	}
	for r, count := range got.truncated {
		switch why := profile.Reason(r); {
		case why == profile.Whole || count == 0:
		case (why == profile.Deoptimizing || why == profile.NotStopped) && count <= few:
			t.Logf("%v: %d", why, count)
		case testEngine == session.PerfEngine && count <= atMost(1.0/200, n): // walked later: code may have gone
			t.Logf("%v: %d", why, count)
		default:
			t.Errorf("%v: %d of %d", why, count, n)
		}
	}
	if got.whole < n*9/10 {
		t.Errorf("only %d samples of %d", got.whole, n)
	}
}
