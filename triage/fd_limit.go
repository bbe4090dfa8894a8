package triage

import (
	"fmt"

	"goprof/profile"
)

// A program at its limit of open files cannot accept connections, read its configuration or load a class.
const nearFDLimit = 0.9 // programs with many open files set their limit far above that number

func fdLimit(x *exam) *suspicion {
	open, ok := x.last.Process.FDs.Get()
	limit, ok2 := x.last.Process.FDLimit.Get()
	if !ok || !ok2 {
		return x.cannotTell("its open files could not be counted (/proc/PID/fd)")
	}
	if limit == 0 || float64(open) < nearFDLimit*float64(limit) {
		return nil
	}
	s := &suspicion{sure: 0.93, severity: profile.Critical,
		claim: fmt.Sprintf("File descriptors run out: %d of %d are open.", open, limit),
		next: fmt.Sprintf("ls -l /proc/%d/fd  (which), then the leak mended, or a higher limit: %s", x.PID,
			x.higher("NOFILE", "--nofile", min(2*limit, max(limit, mostFiles))))}
	if before, ok := x.first.Process.FDs.Get(); ok {
		s.evidence = append(s.evidence, fmt.Sprintf("%d were open %s before", before, seconds(x.Span())))
	}
	return s
}

// mostFiles is the kernel's usual fs.nr_open: no limit of files may be larger.
const mostFiles = 1 << 20

// higher says how a process gets the limit n, which is higher than its own. While the process runs, only
// CAP_SYS_RESOURCE raises it, which root has outside of containers: a JVM has raised its soft limit to the hard one
// (os_linux.cpp, os::init_2). ulimit in another shell changes nothing.
func (x *exam) higher(name, flag string, n uint64) string {
	return fmt.Sprintf("Limit%s= in its unit (a service) or --ulimit (a container), and a restart; without one, as root "+
		"of the host: prlimit --pid %d %s=%d", name, x.PID, flag, n)
}
