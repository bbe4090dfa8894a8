//go:build linux

package sampler

import (
	"testing"

	"golang.org/x/sys/unix"
)

// While a seize is held up (on a busy machine each now and then), the rescuer reaps the pending
// threads that have ended. One that has stopped meanwhile must still be found stopped: otherwise
// nobody lets it go.
func TestReapingLeavesStopsAlone(t *testing.T) {
	p := run1(t, cSpin)
	p.line(t)
	onTracer(t, p.pid, func(tr *Tracer) {
		if e := tr.seize(p.pid); e != 0 {
			t.Fatal(e)
		}
		ptrace(unix.PTRACE_INTERRUPT, uintptr(p.pid), 0, 0)
		eventually(t, "stopped", func() bool { return threadState(p.pid, p.pid) == 't' })
		waitReap(p.pid, 0)
		if s, _ := tr.peek(p.pid); s != stopped {
			t.Errorf("after reaping the stopped thread is in state %d", s)
		}
		tr.release(p.pid, 0)
	})
	eventually(t, "runs on", func() bool { return threadState(p.pid, p.pid) == 'R' })
}
