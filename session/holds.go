//go:build linux

package session

import (
	"goprof/process/procfs"
	"goprof/profile"
	"goprof/sampler/ptrace"
)

// This file says in words why a stop might last too long, or has.

// hindered is the account of stops that lasted too long, or were not begun. It is nil where there are none.
func (r *recording) hindered(holds *ptrace.Holds) *profile.Hindered {
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
	if r.opt.Mode.name() == string(CPUMode) {
		h.Cure += ", or --engine perf, which stops no thread"
	}
	return &h
}

// StopsUnbounded says why a thread that goprof stops now might be held for too long, and what mends that. why is empty
// where nothing speaks for it.
func StopsUnbounded() (why, cure string) { return inWords(ptrace.Unbounded()) }

// inWords says what kept goprof from a CPU, and what mends that.
func inWords(h ptrace.Hindrance) (why, cure string) {
	switch h {
	case ptrace.NoHindrance:
		return "", ""
	case ptrace.NoPriority:
		if procfs.NoRealTime() {
			return "other programs want the CPUs, and goprof has no real-time priority: cpu.rt_runtime_us of its control " +
					"group is 0",
				"docker run --cpu-rt-runtime=95000 --cap-add SYS_NICE ..."
		}
		return "other programs want the CPUs, and goprof has no real-time priority",
			"sudo goprof ... (CAP_SYS_NICE in a container)"
	case ptrace.GroupLimit:
		return "goprof's own control group has a limit on CPU time, and uses it up",
			"a higher CPU limit for goprof's container"
	case ptrace.OthersFirst:
		return "goprof has real-time priority, but others with such priority had the CPUs, or " +
				"kernel.sched_rt_runtime_us ran out",
			"sysctl kernel.sched_rt_runtime_us=-1, where no thread with real-time priority spins"
	}
	return "goprof had a CPU and stood still, as where the host of a virtual machine gives the CPU to others",
		"a less busy host"
}
