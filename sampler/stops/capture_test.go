//go:build linux

package stops

import (
	"testing"

	"goprof/process/procfs"
	"goprof/sampler"
	"goprof/sampler/ptrace"
	"goprof/testdata/ctest"
)

// TestCalledForOthers: where the kernel notes nothing, preempters call at each visit, be it for other processes. If no
// look was taken, nothing has told that the process is there.
func TestCalledForOthers(t *testing.T) {
	p := ctest.Run(t, ctest.Spin)
	proc := procfs.OpenDir(p.PID)
	defer proc.Close()
	progress := sampler.NewProgress(nil)
	c := &Run{Proc: proc, progress: &progress, Tracer: new(ptrace.Tracer),
		Sum: func() sampler.Stats { return sampler.Stats{} }}
	if c.Called = 0; !c.Sleep(0) || c.Stats.Ended {
		t.Error("it has not ended")
	}
	p.Process.Kill()
	p.Wait()
	if c.Called, c.taken = 0, true; !c.Sleep(0) || c.Stats.Ended {
		t.Error("it asks, and a look was taken just now")
	}
	if c.Called = 0; c.Sleep(0) || !c.Stats.Ended {
		t.Error("it does not ask, and no look was taken")
	}
}
