//go:build linux

package diagnose

import (
	"fmt"
	"time"

	"goprof/process"
)

// silentCause says why no more is known of a process: its memory does not answer, or there is no CPU. In the first case
// a call of goprof still hangs.
func (h Host) silentCause(pid int) Cause {
	if c := starved(pid); h.Proc == "" && c != nil {
		return *c
	}
	return Cause{Name: "hangs",
		Why:    "its memory, or a file that it has mapped, does not answer (userfaultfd, FUSE, NFS or swap)",
		Remedy: "cat /proc/" + itoa(pid) + "/stack; mount | grep -E 'fuse|nfs'"}
}

// starved returns a cause if goprof or the process gets no CPU. It returns nil if a call of goprof hangs instead.
func starved(pid int) *Cause {
	switch process.WhyLate() {
	case process.NoCPU:
		return &Cause{Name: "starved", Remedy: "uptime; later once more, or nice -n -15 goprof ...",
			Why: fmt.Sprintf("the machine is short of CPU: goprof did not get enough of it in time (its own threads "+
				"waited %v for a CPU); no call into the process hangs", process.OwnDelay().Round(10*time.Millisecond))}
	case process.Locked:
		return &Cause{Name: "starved", Remedy: "uptime; cat /proc/" + itoa(pid) + "/task/*/stack",
			Why: "a thread of it maps or unmaps memory, and nothing can be read meanwhile: it may have no CPU for that"}
	}
	return nil
}
