//go:build linux

package oracle

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"goprof/profile"
	"goprof/sampler"
	"goprof/sampler/look"
	"goprof/testdata/jvmtest"
)

// TestLateWalks is TestChurn with a walker that is late, as on a machine without a CPU for it. The program tells when
// each generation of its classes began and ended: a stack that names one which did not live when the snapshot was
// taken has a name that came to that place later. GOPROF_CHURN_SECONDS makes it longer, GOPROF_LATE_MS sets one
// delay.
func TestLateWalks(t *testing.T) {
	duration := time.Duration(envNumber("GOPROF_CHURN_SECONDS", 2)) * time.Second
	delays := []int{100, 600}
	if ms := envNumber("GOPROF_LATE_MS", 0); ms > 0 {
		delays = []int{ms}
	}
	agent := agentJar(t, "truth.Redefine")
	jvmtest.ForNewestJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		jvm := jvmtest.Start(t, jdk, "truth.Churn", "-XX:ReservedCodeCacheSize=6m", "-Xmx256m", "-javaagent:"+agent)
		for _, ms := range jvmtest.Drawn(t, 1, delays) {
			lateRun(t, jvm, time.Duration(ms)*time.Millisecond, duration)
		}
		jvm.Quit()
	})
}

// lateStack is a stack of which a generation is named.
type lateStack struct {
	when   int64
	number int
	proven bool
	text   string
}

func lateRun(t *testing.T, jvm *jvmtest.JVM, delay, duration time.Duration) {
	s := attach(t, jvm.PID)
	// On until some stacks can be judged: a machine may give nobody a CPU for seconds.
	const enough = 20
	ctx, cancel := context.WithTimeout(context.Background(), duration+time.Minute)
	defer cancel()
	began := time.Now()
	samples := s.Sampling(testEngine)
	samples.Queue *= 4
	s.Walker.Warm()
	config := sampler.Config{Interval: 5 * time.Millisecond}
	samples.ReadSoon(&config)
	c := churn{t: t, truncated: map[profile.Reason]int{}}
	var late []lateStack
	var stack profile.Stack
	walks, proven := 0, 0
	_, err := samples.Run(ctx, config, func(snap *look.Look) {
		time.Sleep(delay - time.Duration(monotonic()-snap.When))
		s.Walker.Walk(&snap.Snapshot, &stack)
		walks++
		ok := samples.Proven(snap)
		if ok {
			proven++
			c.check(s, true, snap, &stack)
		} else {
			s.VM.Survey() // what a recording does after a sample that was stale
		}
		if n := generationOf(&stack); n > 0 {
			late = append(late, lateStack{snap.When, n, ok, describeShort(&stack)})
		}
		if len(late) >= enough && time.Since(began) >= duration {
			cancel()
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	judged, wrong, refused := judgeLate(t, late, livesOf(t, jvm))
	t.Logf("%v late: %d walks, %d of them proven, %d could be judged: %d proven ones are wrong, and %d of the others",
		delay, walks, proven, judged, wrong, refused)
	if judged == 0 {
		t.Error("nothing was seen that could be wrong")
	}
}

// livesOf is when each generation that has ended began and ended, as the program says.
func livesOf(t *testing.T, jvm *jvmtest.JVM) map[int][2]int64 {
	t.Helper()
	lives := map[int][2]int64{}
	for _, line := range jvm.Command("spans") {
		var n int
		var span [2]int64
		if _, err := fmt.Sscan(line, &n, &span[0], &span[1]); err != nil {
			t.Fatal(err)
		}
		lives[n] = span
	}
	return lives
}

// judgeLate counts the stacks that name a generation which is known to have ended, the wrong ones that were proven,
// and the wrong ones that were not.
func judgeLate(t *testing.T, late []lateStack, lives map[int][2]int64) (judged, wrong, refused int) {
	t.Helper()
	for _, l := range late {
		span, ended := lives[l.number]
		if !ended {
			continue
		}
		judged++
		switch {
		case l.when >= span[0] && l.when <= span[1]:
		case !l.proven:
			refused++
		default:
			if wrong++; wrong < 4 {
				t.Errorf("generation %d lived from %d to %d, and is seen at %d\n%s", l.number, span[0], span[1], l.when, l.text)
			}
		}
	}
	return judged, wrong, refused
}

// generationOf is the number of the generation that a stack names, 0 if none.
func generationOf(st *profile.Stack) (n int) {
	for i := range st.Frames {
		if name, ok := strings.CutPrefix(st.Frames[i].Func.Name, "churn.G"); ok && st.Frames[i].Kind.Java() {
			fmt.Sscanf(name, "%d.", &n)
			return n
		}
	}
	return 0
}

func describeShort(st *profile.Stack) string {
	var b strings.Builder
	for _, f := range st.Frames[:min(len(st.Frames), 8)] {
		fmt.Fprintf(&b, "  %v %s:%d\n", f.Kind, f.Func.Name, f.Line)
	}
	return b.String()
}
