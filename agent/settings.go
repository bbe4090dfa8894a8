//go:build linux

package agent

import (
	"errors"
	"fmt"
	"time"

	"goprof/profile"
	"goprof/profile/resource"
	"goprof/session"
)

// Settings say which JVMs to record, and how.
type Settings struct {
	Rate   float64            // samples per second of CPU time; in other modes than cpu, looks per second at each thread
	Mode   session.Mode       // session.CPUMode ...
	Engine session.EngineName // of CPUMode
	Every  time.Duration      // from one batch to the next
	// MaxCPU limits goprof's CPU time plus the pauses of all JVMs, as a share of the host's CPU time from 0 to 1. 0
	// sets no limit.
	MaxCPU float64
	// MaxJVMs limits how many JVMs are recorded at a time. Those that use the most CPU time come first.
	MaxJVMs int
	// MaxMemory limits the memory of goprof, in bytes. 0 sets no limit.
	MaxMemory int64
	Choice    Choice
	// Events are recorded beside the samples of Mode, in JVMs that fit a rule of EventMatch. Without a rule every JVM
	// fits.
	Events     []session.AskedEvent
	EventMatch []Rule
	// Attributes are added to the attributes of each process, and override them.
	Attributes resource.Attributes
	// Pools merges threads whose names differ only by a number.
	Pools bool
}

// Default returns the settings of an agent without options.
func Default() Settings {
	return Settings{Rate: 19, Mode: session.CPUMode, Engine: session.AutoEngine, Every: 15 * time.Second, MaxCPU: 0.01,
		MaxJVMs: 200, MaxMemory: 400e6}
}

// Limits of settings.
const (
	MinRate, MaxRate   = 0.1, 1000
	MinEvery, MaxEvery = time.Second, 10 * time.Minute
	MostJVMs           = 1000
	LeastMemory        = 50e6 // some JVMs fit into this
)

// Check returns an error that names the flag with a wrong value.
func (s *Settings) Check() error {
	switch {
	case !(s.Rate >= MinRate && s.Rate <= MaxRate):
		return fmt.Errorf("rate is between %v and %v Hz", MinRate, MaxRate)
	case s.Every < MinEvery || s.Every > MaxEvery:
		return fmt.Errorf("every is between %v and %v", MinEvery, MaxEvery)
	case !(s.MaxCPU >= 0 && s.MaxCPU <= 1):
		return errors.New("max-cpu is a share of the host's CPUs, between 0% and 100%")
	case s.MaxJVMs < 1 || s.MaxJVMs > MostJVMs:
		return fmt.Errorf("max-jvms is between 1 and %d", MostJVMs)
	case s.MaxMemory != 0 && s.MaxMemory < LeastMemory:
		return errors.New("max-memory is at least 50MB, or 0 for any")
	case s.Engine == session.PerfEngine && s.Mode != session.CPUMode:
		return errors.New("engine perf is for mode cpu")
	}
	switch string(s.Mode) {
	case profile.ModeCPU, profile.ModeWall, profile.ModeOffCPU:
		return s.checkEvents()
	}
	return fmt.Errorf("mode is cpu, wall or off-cpu, not %q", string(s.Mode))
}

// interval returns the CPU time that a sample stands for.
func (s *Settings) interval() time.Duration { return time.Duration(float64(time.Second) / s.Rate) }
