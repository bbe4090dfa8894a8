//go:build linux

package session

import "time"

// sparing bounds how often goprof does work whose cost grows with the process.
type sparing struct {
	at   time.Time
	cost time.Duration
}

// due reports whether the last cost is at most 1/share of the time since then.
func (s *sparing) due(share int) bool { return time.Since(s.at) >= s.cost*time.Duration(share) }

// doTimed does the work, and notes how long it took.
func (s *sparing) doTimed(what func() error) {
	began := time.Now()
	what()
	s.at, s.cost = time.Now(), time.Since(began)
}
