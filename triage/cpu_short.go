package triage

import (
	"fmt"

	"goprof/profile"
)

// With idle CPUs, a thread waits some microseconds for a CPU. The program is short of CPU if its threads wait for much
// of the time in which they want to run, and the machine has no idle CPU. If the machine has idle CPUs, the cause is
// another one: the limit of a control group (cpu-throttled), or a cpuset that is too small.
const (
	shortShare = 0.3 // of the time in which threads of the program wanted to run
	// shortThreads is the least average number of waiting threads. A program that does nearly nothing may also wait for
	// most of its time, and no user notices.
	shortThreads = 0.1
	busyMachine  = 0.85 // of all CPU time, used by any process
	stolen       = 0.1  // of all CPU time, taken by the host of a virtual machine
)

func cpuShort(x *exam) *suspicion {
	waited, ok := x.Rates.WaitedCPU.Get()
	used, ok2 := x.Rates.CPU.Get()
	if !ok || !ok2 {
		return x.cannotTell("how long its threads waited for a CPU could not be read (/proc/PID/task/TID/schedstat)")
	}
	share := waited / max(waited+used, 1e-9)
	if throttled, _ := x.throttling(); throttled >= throttledShare/2 {
		return nil // the limit is the reason for the waits
	}
	if share < shortShare || waited < shortThreads {
		return nil
	}
	busy, steal := x.Rates.Busy.Or(0), x.Rates.Steal.Or(0)
	if busy+steal < busyMachine && steal < stolen {
		return nil
	}
	s := &suspicion{sure: scaled(share, shortShare, 0.55, 0.84), severity: profile.Warning,
		claim: fmt.Sprintf("The machine is short of CPU: the program's threads waited for one in %s of the time in which "+
			"they wanted to run.",
			percent(share)),
		evidence: []string{fmt.Sprintf("%.2f threads waited for a CPU on average, %.2f had one", waited, used),
			fmt.Sprintf("the machine's CPUs were %s busy", percent(busy))},
		next: "top -H  (who else runs), then fewer programs or more CPUs"}
	if steal >= 0.01 {
		s.evidence = append(s.evidence, fmt.Sprintf("%s of their time was stolen by the host", percent(steal)))
	}
	if n, ok := x.last.Machine.Running.Get(); ok {
		s.evidence = append(s.evidence, fmt.Sprintf("%d threads wanted one of %d CPUs at the end", n,
			x.last.Machine.CPUs.Or(0)))
	}
	if stall, ok := x.Rates.CPUStall.Get(); ok {
		s.evidence = append(s.evidence, fmt.Sprintf("in %s of the time some thread of the machine waited (pressure)",
			percent(stall)))
	}
	return s
}
