//go:build linux

package session

import (
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestRunAhead: while a recording runs, goprof's ordinary threads run ahead. Afterwards they do not. A program that
// is started meanwhile is an ordinary one.
func TestRunAhead(t *testing.T) {
	// this test looks at the priority of this thread; the thread is not unlocked, so it ends with the test
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
