//go:build linux

package session

import (
	"goprof/profile"
	"goprof/sampler/ptrace"
)

// reasonOf returns the profile's reason for the outcome of a look.
func reasonOf(o ptrace.Outcome) profile.Reason {
	switch o {
	case ptrace.Taken:
		return profile.Whole
	case ptrace.ThreadGone, ptrace.Zombie:
		return profile.ThreadGone
	case ptrace.ProcessGone:
		return profile.ProcessGone
	case ptrace.NotPermitted:
		return profile.NotPermitted
	case ptrace.AlreadyTraced:
		return profile.AlreadyTraced
	case ptrace.Silent:
		return profile.Silent
	case ptrace.ReadLate:
		return profile.ReadLate
	case ptrace.Pending, ptrace.TimedOut, ptrace.Backlog:
		return profile.StopTimeout
	case ptrace.Missed:
		return profile.StopMissed
	case ptrace.Unadmitted:
		return profile.Unadmitted
	case ptrace.RingFull:
		return profile.RingFull
	case ptrace.Throttled:
		return profile.Throttled
	case ptrace.NoRegisters:
		return profile.NoRegisters
	case ptrace.QueueFull:
		return profile.QueueFull
	case ptrace.Moved:
		return profile.Moved
	}
	return profile.Other
}
