//go:build linux

package wall

import (
	"fmt"
	"os"
	"testing"

	"goprof/process/procfs"
	"goprof/testdata/ctest"
)

// TestQuietKnowsWhomItRead: the clock may show that no thread has moved since the last reading. For a thread that was
// never read, it shows nothing.
func TestQuietKnowsWhomItRead(t *testing.T) {
	p := ctest.Run(t, ctest.Spin)
	proc := procfs.OpenDir(p.PID)
	defer proc.Close()
	var l watchList
	l.open(proc, 16)
	defer l.close()
	l.list()
	if l.noStats {
		t.Skip("this kernel has no schedstat, and then nobody's clock is compared")
	}
	th := l.byTID[p.PID]
	if th == nil {
		t.Fatal("it is not in the list")
	}
	l.quiet.now = true
	first, ok := l.charged(th)
	if !ok || first.Turns == 0 { // a thread that has begun has had a CPU; its CPU time is charged at a tick
		t.Fatalf("%+v %v of a thread that spins", first, ok)
	}
	ctest.Eventually(t, "it was charged", func() bool {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/schedstat", p.PID, p.PID))
		stat, ok := procfs.ParseSchedstat(b)
		return err == nil && ok && stat != first
	})
	l.quiet.now = true
	if again, ok := l.charged(th); !ok || again != first {
		t.Errorf("%+v %v: it was asked again", again, ok)
	}
}

// TestForgottenRests: a thread was to be stopped at a place, and was not. The next time, this place counts as new.
func TestForgottenRests(t *testing.T) {
	var th watched
	for pc := range uint64(maxRests + 2) {
		th.addRest(rest{pc: pc + 1, sp: 16})
	}
	last := uint64(maxRests + 2)
	if th.restAt(last, 16) == nil {
		t.Fatal("the last place is not known")
	}
	th.forgetRest()
	if th.restAt(last, 16) != nil || th.restAt(last-1, 16) == nil {
		t.Error("the last place, and only that, is to be forgotten")
	}
}
