//go:build linux

package session

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"goprof/profile"
	"goprof/target"
	"goprof/testdata/jvmtest"
	"goprof/unwind"
)

// shadowModes are the ways to run Java that each make other frames.
var shadowModes = []struct {
	name  string
	flags []string
	args  []string
}{
	{name: "mixed"},
	{name: "interpreted", flags: []string{"-Xint"}},
	{name: "c1", flags: []string{"-XX:TieredStopAtLevel=1"}},
	{name: "c1-profiled", flags: []string{"-XX:TieredStopAtLevel=3"}},
	{name: "c2-only", flags: []string{"-XX:-TieredCompilation"}},
	{name: "inlining", flags: []string{"-XX:MaxInlineLevel=30", "-XX:MaxInlineSize=300", "-XX:FreqInlineSize=600"}},
	{name: "deopt-storm", flags: []string{"-XX:PerMethodRecompilationCutoff=100000000"}, args: []string{"1", "1", "storm"}},
}

// shadowCount is what became of the stops of one mode.
type shadowCount struct {
	stops, same, more, less, inlined, truncated, mismatch int
	reasons                                               map[profile.Reason]int
}

func (c *shadowCount) String() string {
	return fmt.Sprintf("%d stops: %d the same, %d one more, %d one less, %d inlined, %d truncated %v, %d mismatches",
		c.stops, c.same, c.more, c.less, c.inlined, c.truncated, c.reasons, c.mismatch)
}

// TestShadow stops a thread that keeps its own stack and compares frame by frame.
func TestShadow(t *testing.T) {
	stops := 2000
	if s := os.Getenv("GOPROF_SHADOW_STOPS"); s != "" {
		stops, _ = strconv.Atoi(s)
	}
	jvmtest.ForEachJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		for _, mode := range shadowModes {
			t.Run(mode.name, func(t *testing.T) { shadowRun(t, jdk, mode.flags, mode.args, stops) })
		}
	})
}

func shadowRun(t *testing.T, jdk jvmtest.JDK, flags, args []string, stops int) {
	lockThread(t)
	path := filepath.Join(t.TempDir(), "shadow")
	options := append(append(append([]string{}, flags...), "--", path), args...)
	jvm := jvmtest.Start(t, jdk, "truth.Shadow", options...)
	shadow, err := jvmtest.OpenShadow(path)
	if err != nil {
		t.Fatal(err)
	}
	defer shadow.Close()
	threads, err := shadow.Threads()
	if err != nil || len(threads) == 0 {
		t.Fatal("no shadow threads", err)
	}
	s := attach(t, jvm.PID)
	tid := threads[0].TID
	th := s.dir.get(tid)
	if th == nil || th.java.Addr == 0 {
		t.Fatalf("thread %d is not a Java thread", tid)
	}
	count := &shadowCount{reasons: map[profile.Reason]int{}}
	for i := range stops {
		shadowStop(t, s, shadow, tid, th, count)
		pause(i)
	}
	t.Log(count)
	if count.mismatch > 0 {
		t.Errorf("%d mismatches", count.mismatch)
	}
	if count.stops < stops*9/10 {
		t.Errorf("only %d of %d stops could be compared", count.stops, stops)
	}
}

func shadowStop(t *testing.T, s *Session, shadow *jvmtest.Shadow, tid int, th *thread, count *shadowCount) {
	var own jvmtest.ShadowThread
	var snap *target.Snapshot
	h, n := th.hint(s.VM)
	err := stopped(s.Process, tid, h, n, func(sn *target.Snapshot) {
		snap = sn
		var err error
		if own, err = shadow.Thread(tid); err != nil {
			t.Fatal(err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if !own.Running {
		return
	}
	var st profile.Stack
	s.walker.Walk(snap, unwind.Thread{Java: th.java.Addr}, &st)
	count.stops++
	why := compareShadow(shadow, own, &st, count)
	if why != "" {
		if count.mismatch++; count.mismatch < 4 {
			t.Errorf("seed %d: %s\n%s\nshadow:\n%s", own.Seed, why, describe(s, snap, &st), shadowText(own))
		}
	}
	if st.Truncated != profile.Whole && os.Getenv("SHOW") != "" {
		t.Log(describe(s, snap, &st))
	}
}

func shadowText(own jvmtest.ShadowThread) string {
	var b strings.Builder
	for _, f := range own.Frames {
		fmt.Fprintf(&b, "  %s:%d\n", f.Method, f.Line)
	}
	return b.String()
}

// compareShadow returns why a walk and the thread's own word cannot both be true, or "".
func compareShadow(shadow *jvmtest.Shadow, own jvmtest.ShadowThread, st *profile.Stack, count *shadowCount) string {
	var walked []profile.Frame
	var names []string
	for _, f := range st.Frames {
		if !f.Kind.Java() {
			continue
		}
		if name, ok := shadow.Name(f.Func.Name); ok {
			walked, names = append(walked, f), append(names, name)
		}
	}
	if st.Truncated != profile.Whole {
		count.truncated++
		count.reasons[st.Truncated]++
		if len(names) > len(own.Frames)+1 {
			return "a truncated walk has more frames than the shadow"
		}
		// What there is of it must be right, from the top.
		for skip := range 3 {
			if skip == 2 {
				return "a truncated walk is wrong"
			}
			part := own.Frames[:min(len(own.Frames), max(0, len(names)-skip))]
			if agree(part, walked[min(skip, len(walked)):], names[min(skip, len(names)):], false) == "" {
				return ""
			}
		}
	}
	switch len(names) - len(own.Frames) {
	case 0:
		if why := agree(own.Frames, walked, names, true); why == "" {
			count.same++
			return ""
		}
	case 1:
		if agree(own.Frames, walked[1:], names[1:], false) == "" {
			count.more++
			return ""
		}
	case -1:
		if agree(own.Frames[1:], walked, names, true) == "" {
			count.less++
			return ""
		}
	}
	// Only debug information tells what is inlined into the topmost physical frame.
	below := 0
	for below < len(walked) && walked[below].SP == walked[0].SP {
		below++
	}
	if rest := len(walked) - below; below > 0 && rest <= len(own.Frames) {
		if agree(own.Frames[len(own.Frames)-rest:], walked[below:], names[below:], true) == "" {
			count.inlined++
			return ""
		}
	}
	if why := agree(own.Frames, walked, names, true); why != "" {
		return why
	}
	return "different"
}

// agree compares names, and the lines of callers. top: the first frame is the shadow's
// own top, whose line says nothing.
func agree(own []jvmtest.ShadowFrame, walked []profile.Frame, names []string, top bool) string {
	if len(own) != len(walked) {
		return fmt.Sprintf("%d frames of the shadow, %d of the walk", len(own), len(walked))
	}
	for i := range own {
		if own[i].Method != names[i] {
			return fmt.Sprintf("frame %d is %s, not %s", i, own[i].Method, names[i])
		}
		if i > 0 && own[i].Line != int(walked[i].Line) {
			return fmt.Sprintf("frame %d, %s, is at line %d, not %d", i, own[i].Method, own[i].Line, walked[i].Line)
		}
	}
	return ""
}
