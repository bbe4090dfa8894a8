//go:build linux

package session

import "time"

// sparing does now and then what costs more the larger the process is.
type sparing struct {
	at   time.Time
	cost time.Duration
}

// due says that what it cost last is no more than 1/share of the time since.
func (s *sparing) due(share int) bool { return time.Since(s.at) >= s.cost*time.Duration(share) }

// doTimed does it, and notes what it cost.
func (s *sparing) doTimed(what func() error) {
	began := time.Now()
	what()
	s.at, s.cost = time.Now(), time.Since(began)
}
