//go:build linux

package ptrace

import (
	"testing"

	"golang.org/x/sys/unix"

	"goprof/testdata/ctest"
)

// On a busy machine a seize is held up now and then. Meanwhile the releaser reaps the pending threads that have ended.
// A pending thread may also have stopped meanwhile. waitid must still report that stop: otherwise the thread stays
// stopped.
func TestReapingLeavesStopsAlone(t *testing.T) {
	p := ctest.Run(t, ctest.Spin)
	p.Line(t)
	onTracer(t, p.PID, func(tr *Tracer) {
		tr.onItsThread()
		if e := tr.seize(p.PID); e != 0 {
			t.Fatal(e)
		}
		ptrace(unix.PTRACE_INTERRUPT, uintptr(p.PID), 0, 0)
		ctest.Eventually(t, "stopped", func() bool { return ctest.State(p.PID, p.PID) == 't' })
		waitReap(p.PID)
		if s, _ := tr.peek(p.PID); s != stopped {
			t.Errorf("after reaping the stopped thread is in state %d", s)
		}
		tr.release(p.PID, 0)
	})
	ctest.Eventually(t, "runs on", func() bool { return ctest.State(p.PID, p.PID) == 'R' })
}
