//go:build linux

package oracle

import (
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"goprof/profile"
	"goprof/sampler/look"
	"goprof/session"
	"goprof/testdata/jvmtest"
	"goprof/vmstructs"
)

// sureCount counts samples, and those whose innermost method is certain.
type sureCount struct{ n, certain int }

func (c *sureCount) add(n int, certain bool) {
	c.n += n
	if certain {
		c.certain += n
	}
}

func (c sureCount) String() string {
	return fmt.Sprintf("%.1f %% of %d", float64(c.certain)*100/float64(max(c.n, 1)), c.n)
}

// sureOfAll are the counts of a program, by what is on top.
type sureOfAll struct{ all, c1, c2, other sureCount }

func (s *sureOfAll) String() string {
	return fmt.Sprintf("certain %v; C1 %v; C2 %v; interpreter, stubs, native code and kernel %v", s.all, s.c1, s.c2,
		s.other)
}

func (s *sureOfAll) sum(o *sureOfAll) {
	add := func(a *sureCount, b sureCount) { a.n, a.certain = a.n+b.n, a.certain+b.certain }
	add(&s.all, o.all)
	add(&s.c1, o.c1)
	add(&s.c2, o.c2)
	add(&s.other, o.other)
}

// TestCertainOfAll: how many of all samples are certain where a program runs as users run it. The JVM has no flag, and
// its own threads count. Samples are counted as in the line "leaves" of a recording.
//
//	GOPROF_LEAF_SAMPLES=2000 go test ./testdata/oracle -run TestCertainOfAll -v
func TestCertainOfAll(t *testing.T) {
	samples, _ := strconv.Atoi(os.Getenv("GOPROF_LEAF_SAMPLES"))
	if samples == 0 {
		t.Skip("a measurement of minutes: make prove ORACLE=TestCertainOfAll. TestLeaf has some of it")
	}
	jvmtest.ForNewestJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		var sum sureOfAll
		for _, p := range leafPrograms {
			if p.line[0] == "truth.Intrinsics" {
				continue
			}
			t.Run(p.name, func(t *testing.T) {
				jvm := jvmtest.Start(t, jdk, p.line[0], p.line[1:]...)
				s := attach(t, jvm.PID)
				awaitCPU(t, s)
				got := countSure(t, s, samples)
				t.Log(got)
				if p.line[0] != "truth.Everyday" && p.line[0] != "truth.Services" { // older figures are of the others
					sum.sum(got)
				}
			})
		}
		t.Logf("all: %v", &sum)
		if sum.all.certain*100 < sum.all.n*40 || sum.all.n < samples*9/10 { // all eight have 52
			t.Errorf("certain are %v", sum.all)
		}
		if c2 := sum.c2; c2.n >= 200 && c2.certain*100 < c2.n*30 {
			t.Errorf("of C2's certain are %v", c2)
		}
	})
}

// awaitCPU waits until a JVM has used 10 s of CPU time: its first seconds are the interpreter's and the compilers', and
// on a busy machine they last longer.
func awaitCPU(t *testing.T, s *session.Session) {
	t.Helper()
	const least = 10 * time.Second
	for end := time.Now().Add(jvmtest.Slow(2 * time.Minute)); s.CPUTime() < least; time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("only %v of CPU time", s.CPUTime())
		}
	}
}

// countSure takes so many samples.
func countSure(t *testing.T, s *session.Session, samples int) *sureOfAll {
	t.Helper()
	var got sureOfAll
	sample(t, s, 2*time.Millisecond, samples, func(l *look.Look, st *profile.Stack) {
		if len(st.Frames) == 0 {
			return
		}
		n, certain := int(l.Samples()), st.Frames[0].Sure == profile.Certain
		got.all.add(n, certain)
		switch b, err := s.VM.Blob(st.Frames[0].PC); {
		case !st.Frames[0].Kind.Java() || err != nil || b.Kind != vmstructs.Nmethod:
			got.other.add(n, certain)
		case b.Level == 4:
			got.c2.add(n, certain)
		default:
			got.c1.add(n, certain)
		}
	})
	return &got
}
