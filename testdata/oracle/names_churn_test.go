//go:build linux

package oracle

import (
	"archive/zip"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"goprof/profile"
	"goprof/sampler/look"
	"goprof/session"
	"goprof/testdata/jvmtest"
)

// TestChurn walks while classes, code and threads come and go all the time. The classes know their
// own names: a frame that is called by one of another generation, or from a line of another
// version of the class, was given a name that it has lost. GOPROF_CHURN_SECONDS makes it longer.
func TestChurn(t *testing.T) {
	duration := 3 * time.Second
	if n, err := strconv.Atoi(os.Getenv("GOPROF_CHURN_SECONDS")); err == nil {
		duration = time.Duration(n) * time.Second
	}
	agent := agentJar(t, "truth.Redefine")
	jvmtest.ForDrawnJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		jvm := jvmtest.Start(t, jdk, "truth.Churn", "-XX:ReservedCodeCacheSize=6m", "-Xmx256m", "-javaagent:"+agent)
		s := attach(t, jvm.PID)
		c := churn{t: t, truncated: map[profile.Reason]int{}}
		end := time.Now().Add(duration)
		before := heapInUse()
		for time.Now().Before(end) || c.isBlind() && time.Now().Before(end.Add(time.Minute)) {
			sampleEach(t, s, testEngine, time.Millisecond, 1000,
				func(by *session.Sampling, snap *look.Look, st *profile.Stack) { c.check(s, by.Proven(snap), snap, st) })
		}
		counts := jvm.Command("counts")[0]
		t.Logf("%d stacks, %d whole, %d frames of generations, %d of versions; program: %s (generations, templates, "+
			"threads, collections, redefinitions)",
			c.stacks, c.whole, c.generations, c.versions, counts)
		for why, n := range c.truncated {
			t.Logf("%v: %d", why, n)
		}
		// Some 0.4 %: code that is gone before it is walked.
		if c.stacks-c.whole > atMost(0.01, c.stacks) {
			t.Errorf("only %d of %d stacks are whole", c.whole, c.stacks)
		}
		if c.isBlind() || strings.HasSuffix(counts, " 0") {
			t.Error("nothing was seen that could be wrong")
		}
		if now := heapInUse(); now-before > maxKept {
			t.Errorf("goprof's heap has grown from %d to %d bytes", before, now)
		} else {
			t.Logf("goprof's heap has grown from %d to %d bytes", before, now)
		}
		jvm.Quit() // verifies the program's own results
	})
}

// maxKept is what the caches of vmstructs and unwind may hold together (maxMethodBytes, maxBlobBytes,
// maxHeld), and a few megabytes: what leaks grows beyond any bound.
const maxKept = 136 << 20

func heapInUse() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// churn judges the stacks of truth.Churn.
type churn struct {
	t                     *testing.T
	generations, versions int // frames that could be judged
	stacks, whole, wrong  int
	truncated             map[profile.Reason]int
}

var generated = regexp.MustCompile(`^churn\.G(\d+)\.(?:applyAsInt|<init>|(run|leaf)(\d+))$`)

// isBlind reports whether nothing was seen yet that could be wrong, or cut.
func (c *churn) isBlind() bool { return c.generations == 0 || c.versions == 0 || c.stacks == 0 }

func (c *churn) check(s *session.Session, proven bool, snap *look.Look, st *profile.Stack) {
	if !proven { // the walk came when other classes may lie where those of the stack were: a recording loses it as stale
		return
	}
	if late := time.Duration(monotonic() - snap.When); late < 100*time.Millisecond { // the walker had a CPU
		c.stacks++
		if st.Truncated == profile.Whole {
			c.whole++
		} else {
			c.truncated[st.Truncated]++
		}
	}
	for i := range st.Frames {
		if why := c.judge(st, i); why != "" {
			if c.wrong++; c.wrong < 4 {
				c.t.Errorf("frame %d: %s\n%s", i, why, describe(s, &snap.Snapshot, st))
			}
			return
		}
	}
}

// judge holds one frame against its caller.
func (c *churn) judge(st *profile.Stack, i int) string {
	f := &st.Frames[i]
	if !f.Kind.Java() || !strings.HasPrefix(f.Func.Name, "churn.") {
		return ""
	}
	var caller profile.Frame
	if i+1 < len(st.Frames) {
		caller = st.Frames[i+1]
	} else if st.Truncated == profile.Whole {
		return "it is a root"
	} else {
		return ""
	}
	if strings.HasPrefix(f.Func.Name, "churn.R.") {
		return c.judgeVersion(f, &caller)
	}
	name := generated.FindStringSubmatch(f.Func.Name)
	if name == nil || name[3] != "" && name[3] != name[1] {
		return "no such method"
	}
	c.generations++
	want := map[string]string{"leaf": "run" + name[1], "run": "applyAsInt"}[name[2]]
	if want != "" && caller.Func.Name != "churn.G"+name[1]+"."+want {
		return "its caller is " + caller.Func.Name
	}
	return ""
}

func (c *churn) judgeVersion(f, caller *profile.Frame) string {
	line := map[string]int32{"churn.R.even": 10, "churn.R.odd": 20}[f.Func.Name]
	switch {
	case line != 0:
		c.versions++
		if caller.Func.Name != "churn.R.run" || caller.Line != line {
			return fmt.Sprintf("its caller is %s:%d, not line %d", caller.Func.Name, caller.Line, line)
		}
	case f.Func.Name == "churn.R.run" && (f.Line != 10 && f.Line != 20 || caller.Func.Name != "churn.R.applyAsInt"):
		return fmt.Sprintf("it is in line %d, called by %s", f.Line, caller.Func.Name)
	}
	return ""
}

// agentJar makes a jar that names a class of the class path as an agent that may redefine classes.
func agentJar(t *testing.T, class string) string {
	t.Helper()
	file, err := os.Create(filepath.Join(t.TempDir(), "agent.jar"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	z := zip.NewWriter(file)
	w, err := z.Create("META-INF/MANIFEST.MF")
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(w, "Manifest-Version: 1.0\r\nPremain-Class: %s\r\nCan-Redefine-Classes: true\r\n\r\n", class)
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return file.Name()
}
