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

// Settings say whom to record, and how.
type Settings struct {
	Rate   float64            // samples for each second of CPU time; in other modes than cpu, looks at each thread
	Mode   session.Mode       // session.CPUMode ...
	Engine session.EngineName // of CPUMode
	Every  time.Duration      // from one batch to the next
	// MaxCPU is the share of the host's CPU time that goprof and the pauses of all JVMs may take together, 0 to 1. 0
	// sets no bound.
	MaxCPU float64
	// MaxJVMs bounds how many JVMs are recorded at a time. The hungriest come first.
	MaxJVMs int
	// MaxMemory bounds what goprof keeps, in bytes. 0 sets no bound.
	MaxMemory int64
	Choice    Choice
	// Events are recorded beside the samples of Mode, of JVMs that fit a rule of EventMatch. Without a rule that is all.
	Events     []session.AskedEvent
	EventMatch []Rule
	// Attributes are added to what is known of each process, and go before it.
	Attributes resource.Attributes
	// Pools takes threads together whose names differ only by a number.
	Pools bool
}

// Default is how an agent works that was told nothing.
func Default() Settings {
	return Settings{Rate: 19, Mode: session.CPUMode, Engine: session.AutoEngine, Every: 15 * time.Second, MaxCPU: 0.01,
		MaxJVMs: 200, MaxMemory: 400e6}
}

// The bounds of settings.
const (
	MinRate, MaxRate   = 0.1, 1000
	MinEvery, MaxEvery = time.Second, 10 * time.Minute
	MostJVMs           = 1000
	LeastMemory        = 50e6 // some JVMs fit into that
)

// Check says what is wrong with settings, by the names of flags.
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

// interval is the CPU time that a sample stands for.
func (s *Settings) interval() time.Duration { return time.Duration(float64(time.Second) / s.Rate) }
