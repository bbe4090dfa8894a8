//go:build linux

package session

import (
	"goprof/profile"
	"goprof/sampler/ptrace"
)

// reasons are the profile's reasons for the outcomes of looks.
var reasons = map[ptrace.Outcome]profile.Reason{
	ptrace.Taken: profile.Whole, ptrace.ThreadGone: profile.ThreadGone, ptrace.Zombie: profile.ThreadGone,
	ptrace.ProcessGone: profile.ProcessGone, ptrace.NotPermitted: profile.NotPermitted,
	ptrace.AlreadyTraced: profile.AlreadyTraced, ptrace.Silent: profile.Silent, ptrace.ReadLate: profile.ReadLate,
	ptrace.Pending: profile.StopTimeout, ptrace.TimedOut: profile.StopTimeout, ptrace.Backlog: profile.StopTimeout,
	ptrace.Missed: profile.StopMissed, ptrace.Unadmitted: profile.Unadmitted, ptrace.RingFull: profile.RingFull,
	ptrace.Throttled: profile.Throttled, ptrace.NoRegisters: profile.NoRegisters, ptrace.QueueFull: profile.QueueFull,
	ptrace.Moved: profile.Moved,
}

// reasonOf returns the profile's reason for the outcome of a look.
func reasonOf(o ptrace.Outcome) profile.Reason {
	if why, known := reasons[o]; known {
		return why
	}
	return profile.Other
}
