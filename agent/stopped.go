//go:build linux

package agent

import (
	"sync"
	"time"
)

// stopped remembers the JVMs whose stacks perf_event cuts too often (session.ErrCut). They are sampled by stops.
type stopped struct {
	mu      sync.Mutex
	started map[int]time.Duration // when the process began, by its number
}

// mostStopped limits how many JVMs are remembered. A forgotten JVM is tried with perf_event once more.
const mostStopped = 1 << 12

func (s *stopped) note(j *Candidate) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.started == nil || len(s.started) >= mostStopped {
		s.started = map[int]time.Duration{}
	}
	s.started[j.PID] = j.Started
}

func (s *stopped) has(j *Candidate) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	started, ok := s.started[j.PID]
	return ok && started == j.Started
}
