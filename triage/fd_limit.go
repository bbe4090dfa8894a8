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
		next:  fmt.Sprintf("ls -l /proc/%d/fd  (which), then the leak mended, or a higher limit (ulimit -n)", x.PID)}
	if before, ok := x.first.Process.FDs.Get(); ok {
		s.evidence = append(s.evidence, fmt.Sprintf("%d were open %s before", before, seconds(x.Span())))
	}
	return s
}
