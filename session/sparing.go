//go:build linux

package session

import "time"

// sparing bounds how often work is done whose cost grows with the process.
type sparing struct {
	at   time.Time
	cost time.Duration
}

// due reports whether the cost of the last time is no more than 1/share of the time since.
func (s *sparing) due(share int) bool { return time.Since(s.at) >= s.cost*time.Duration(share) }

// doTimed does the work, and notes how long it took.
func (s *sparing) doTimed(what func() error) {
	began := time.Now()
	what()
	s.at, s.cost = time.Now(), time.Since(began)
}
