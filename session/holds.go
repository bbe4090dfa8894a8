//go:build linux

package session

import (
	"goprof/process/procfs"
	"goprof/profile"
	"goprof/sampler/ptrace"
)

// This file explains in words why a stop might last too long, or did.

// hindered returns the account of stops that lasted too long, or were not begun. It is nil if there are none.
func hindered(holds *ptrace.Holds) *profile.Hindered {
	var h profile.Hindered
	most := ptrace.NoHindrance
	for i := range holds.LeftOut {
		why := ptrace.Hindrance(i)
		h.LeftOut += holds.LeftOut[i]
		h.Over += holds.Over[i]
		if n := holds.LeftOut[i] + holds.Over[i]; n > holds.LeftOut[most]+holds.Over[most] {
			most = why
		}
	}
	if h.LeftOut+h.Over == 0 {
		return nil
	}
	h.Why, h.Cure = inWords(most)
	return &h
}

// StopsUnbounded returns why a thread that goprof stops now might be held for too long, and the remedy. why is empty if
// no reason is known.
func StopsUnbounded() (why, cure string) { return inWords(ptrace.Unbounded()) }

// inWords returns what kept goprof from a CPU, and the remedy.
func inWords(h ptrace.Hindrance) (why, cure string) {
	switch h {
	case ptrace.NoHindrance:
		return "", ""
	case ptrace.NoPriority:
		if group, file := procfs.NoRealTime(); file != "" {
			return "other threads want the CPUs, and goprof has no real-time priority: cpu.rt_runtime_us of its control " +
				"group is 0", giveRealTime(group, file)
		}
		if _, cure = withoutPriority(); cure == "" {
			cure = "goprof as root on the host"
		}
		return "other threads want the CPUs, and goprof has no real-time priority", cure
	case ptrace.GroupLimit:
		return "goprof's own control group has a limit on CPU time, and uses it up",
			"a higher CPU limit for goprof's container"
	case ptrace.OthersFirst:
		// kernel.sched_rt_runtime_us=-1 is no remedy. It removes the machine's protection against such threads, and threads
		// with a higher priority than goprof's (1 to 3 of 99) still go first.
		return "goprof has real-time priority, but others with such priority had the CPUs, or " +
				"kernel.sched_rt_runtime_us ran out",
			"fewer programs with real-time priority"
	}
	return "goprof had a CPU and stood still, as where the host of a virtual machine gives the CPU to others",
		"a less busy host"
}
