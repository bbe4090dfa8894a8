//go:build linux

package agent

import "time"

// limiter bounds how much is said: of thousands of JVMs each may have a cause to be told.
type limiter struct {
	since time.Time
	n     int
}

// mostSaid lines in saidWithin.
const (
	mostSaid   = 20
	saidWithin = time.Minute
)

func (l *limiter) may(now time.Time) bool {
	if now.Sub(l.since) >= saidWithin {
		l.since, l.n = now, 0
	}
	l.n++
	return l.n <= mostSaid
}
