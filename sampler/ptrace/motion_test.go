//go:build linux

package ptrace

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"goprof/process/procfs"
	"goprof/testdata/ctest"
)

// TestInCall: a thread that waits in a system call does so, too, when a signal has stopped it there. A thread that
// computes does not.
func TestInCall(t *testing.T) {
	cpu := ctest.NeedCPU(t)
	for source, want := range map[string]bool{"int main(void) { ready(); for (;;) pause(); }": true, ctest.Spin: false} {
		p := ctest.Run(t, source)
		proc := procfs.OpenDir(p.PID)
		defer proc.Close()
		mem, err := os.Open(procfs.TaskFile(p.PID, p.PID, "mem"))
		if err != nil {
			t.Fatal(err)
		}
		defer mem.Close()
		inCall := func() bool {
			return InCall(proc, p.PID, cpu, func(addr uint64, b []byte) error {
				_, err := mem.ReadAt(b, int64(addr))
				return err
			})
		}
		ctest.Eventually(t, "so it is while it goes on", func() bool { return inCall() == want })
		ctest.Eventually(t, "so it is while it is stopped", func() bool { // it may be on its way out of ready
			p.Process.Signal(unix.SIGSTOP)
			ctest.Eventually(t, "stopped", func() bool { return ctest.State(p.PID, p.PID) == 'T' })
			defer p.Process.Signal(unix.SIGCONT)
			return inCall() == want
		})
	}
}
