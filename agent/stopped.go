//go:build linux

package agent

import (
	"sync"
	"time"
)

// stopped remembers JVMs of which stops tell more than perf_event does (session.ErrCut).
type stopped struct {
	mu      sync.Mutex
	started map[int]time.Duration // when the process began, by its number
}

// mostStopped bounds how many are remembered. A JVM that was forgotten is found out about once more.
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
