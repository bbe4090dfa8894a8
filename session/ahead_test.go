//go:build linux

package session

import (
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestRunAhead: while a recording runs, goprof's ordinary threads have the better priority. Afterwards they do not. A
// program that goprof starts in the meantime has ordinary priority.
func TestRunAhead(t *testing.T) {
	// This test looks at the priority of its OS thread. The thread stays locked, so it ends with the test.
	runtime.LockOSThread()
	nice := func() int32 {
		attr, err := unix.SchedGetAttr(0, 0)
		if err != nil {
			t.Skipf("the kernel does not tell a thread's priority: %v", err)
		}
		return attr.Nice
	}
	if nice() != 0 || os.Geteuid() != 0 {
		t.Skip("not an ordinary thread of root's")
	}
	first := runAhead()
	if nice() != aheadNice {
		first()
		t.Skip("this machine does not permit better priorities")
	}
	second := runAhead()
	first()
	if nice() != aheadNice {
		t.Error("given back, and one still records")
	}
	out, err := exec.Command("nice").Output()
	if err != nil || strings.TrimSpace(string(out)) != "0" {
		t.Errorf("a program that was started has nice %q, %v", out, err)
	}
	second()
	if nice() != 0 {
		t.Errorf("nice %d, and nobody records", nice())
	}
}

// TestMinder: times shorter than a quarter of a second are not judged. After goprof has used more than its share, the
// minder looks again as soon as in the beginning.
func TestMinder(t *testing.T) {
	const ms = time.Millisecond
	begin := time.Now()
	m := minder{at: begin, used: 7 * ms}
	for i, c := range []struct {
		now, used   time.Duration // since the beginning
		over        bool
		again       time.Duration
		judgedSoFar int
	}{
		{20 * ms, 19 * ms, false, aheadSoon, 0}, // the start
		{270 * ms, 130 * ms, false, aheadSoon, 1},
		{520 * ms, 260 * ms, true, aheadSoon, 2},
		{600 * ms, 260 * ms, true, aheadSoon, 2}, // too soon after the last judgement
		{760 * ms, 300 * ms, false, aheadSoon, 3},
		{1000 * ms, 310 * ms, false, aheadEvery, 4},
		{2000 * ms, 820 * ms, true, aheadSoon, 5},
		{2250 * ms, 830 * ms, false, aheadEvery, 6},
		{3250 * ms, 1330 * ms, false, aheadEvery, 7}, // exactly its share
	} {
		again := m.look(begin.Add(c.now), c.used+7*ms)
		if m.over != c.over || again != c.again || m.judged != c.judgedSoFar {
			t.Errorf("look %d: again in %v, %+v", i, again, m)
		}
	}
}
