//go:build linux

package ptrace

import "time"

// mostChances is how many reads of one thread's memory may be given up within chanceFor. A read that is late because
// the Runner has no CPU does not count.
const (
	mostChances = 3
	chanceFor   = time.Minute
)

// Chances counts the reads of one thread's memory that were given up. Each of them is forgotten after a minute, because
// the memory may answer again and a run may last for days. So a thread whose memory never answers costs three such
// reads a minute. Times are CLOCK_MONOTONIC.
type Chances struct {
	lost [mostChances]int64 // when the last reads were given up, the latest first; 0: none
}

// Lose notes a read that was given up.
func (c *Chances) Lose(now int64) {
	copy(c.lost[1:], c.lost[:])
	c.lost[0] = now
}

// Spent reports whether to leave the thread alone, because too many of its reads were given up lately.
func (c *Chances) Spent(now int64) bool {
	oldest := c.lost[mostChances-1]
	return oldest != 0 && now-oldest < int64(chanceFor)
}
