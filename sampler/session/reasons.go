//go:build linux

package session

import (
	"goprof/profile"
	"goprof/sampler"
)

// reasonOf names what became of a look in the profile's words.
func reasonOf(o sampler.Outcome) profile.Reason {
	switch o {
	case sampler.Taken:
		return profile.Whole
	case sampler.ThreadGone, sampler.Zombie:
		return profile.ThreadGone
	case sampler.ProcessGone:
		return profile.ProcessGone
	case sampler.NotPermitted:
		return profile.NotPermitted
	case sampler.AlreadyTraced:
		return profile.AlreadyTraced
	case sampler.Silent:
		return profile.Silent
	case sampler.Pending, sampler.TimedOut, sampler.Backlog:
		return profile.StopTimeout
	case sampler.RingFull:
		return profile.RingFull
	case sampler.Throttled:
		return profile.Throttled
	case sampler.NoRegisters:
		return profile.NoRegisters
	case sampler.QueueFull:
		return profile.QueueFull
	case sampler.Moved:
		return profile.Moved
	}
	return profile.Other
}
