//go:build linux

package agent

import "time"

// limiter limits how many lines the agent writes, because each of thousands of JVMs may cause one.
type limiter struct {
	since time.Time
	n     int
}

// At most mostSaid lines are written in saidWithin.
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
