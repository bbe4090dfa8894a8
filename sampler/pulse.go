//go:build linux

package sampler

import (
	"time"

	"goprof/sampler/ptrace"
)

// A pulse is a moment at which goprof does all work that can wait: a multiple of a time, by CLOCK_MONOTONIC. Waking a
// Go program takes more CPU time than most of that work. Go finds an OS thread, which wakes others up to look for work,
// and sysmon wakes up, too. So an agent wakes up once for all of it (docs/decisions/0022).

// PulseAfter is the first multiple of every after a moment.
func PulseAfter(moment, every int64) int64 { return moment - moment%every + every }

// IsAbout reports whether so much time has passed, or nearly so. A wake-up at a multiple of a time is a little late,
// and not each one is as late as the one before.
func IsAbout(passed, every int64) bool { return passed >= every-every/10 }

// Pulse is a ticker whose ticks come together with those of others.
type Pulse struct {
	C     <-chan time.Time
	timer *time.Timer
}

// NewPulse makes a Pulse. Its first tick is the first multiple of every, and shift beyond it.
func NewPulse(every, shift time.Duration) *Pulse {
	t := time.NewTimer(untilPulse(every, shift))
	return &Pulse{t.C, t}
}

// Next is to be called after each tick: C has another tick at the next multiple of every, and shift beyond it.
func (p *Pulse) Next(every, shift time.Duration) { p.timer.Reset(untilPulse(every, shift)) }

// Stop ends it.
func (p *Pulse) Stop() { p.timer.Stop() }

func untilPulse(every, shift time.Duration) time.Duration {
	now := ptrace.Monotonic()
	return time.Duration(PulseAfter(now-int64(shift), int64(every)) + int64(shift) - now)
}
