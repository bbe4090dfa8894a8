package triage

import (
	"fmt"

	"goprof/profile"
)

// A thread waits some milliseconds for a page from a disk. A JVM that has started needs no such pages. Memory that is
// swapped out and never touched does no harm.
const (
	swapFaults = 20.0  // per second, if the process is partly swapped out: a fifth of a thread's time at 10 ms each
	diskFaults = 200.0 // per second, if it is not: mapped files, evicted pages of libraries
)

func swapping(x *exam) *suspicion {
	faults, ok := x.Rates.MajorFaults.Get()
	if !ok {
		return x.cannotTell("its page faults could not be read (/proc/PID/stat)")
	}
	swap := x.last.Process.Swap.Or(0)
	limit := diskFaults
	if swap > 0 {
		limit = swapFaults
	}
	if faults < limit {
		return nil
	}
	s := &suspicion{sure: 0.9, severity: profile.Critical,
		claim: fmt.Sprintf("The program waits for its memory: %.0f pages a second come from a disk.", faults),
		next:  "free -m; vmstat 1  (who uses the memory), then less heap (-Xmx) or more memory"}
	s.evidence = append(s.evidence, fmt.Sprintf("%s of the process are in swap, %s in memory", size(swap),
		size(x.last.Process.RSS.Or(0))))
	if in, ok := x.Rates.SwapIn.Get(); ok {
		s.evidence = append(s.evidence, fmt.Sprintf("the machine swaps in %.0f pages a second, out %.0f", in,
			x.Rates.SwapOut.Or(0)))
	}
	if stall, ok := x.Rates.MemStall.Get(); ok {
		s.evidence = append(s.evidence, fmt.Sprintf("in %s of the time some thread of the machine waited for memory",
			percent(stall)))
	}
	return s
}
