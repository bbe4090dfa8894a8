package ship

import (
	"math/rand/v2"
	"time"
)

const (
	firstWait   = time.Second
	longestWait = time.Minute
	// longestAsked bounds the wait that a server may ask for, so that a wrong header does not stop delivery for a day.
	longestAsked = 10 * time.Minute
)

// backoff is how long to wait after consecutive failures.
type backoff struct{ last time.Duration }

func (b *backoff) reset() { b.last = 0 }

// next doubles the wait, up to a minute. The wait varies by a fifth, so that the agents of a fleet do not all retry at
// the same time. It is never shorter than the wait that the server asks for.
func (b *backoff) next(asked time.Duration) time.Duration {
	b.last = min(max(2*b.last, firstWait), longestWait)
	wait := b.last - b.last/5 + rand.N(2*b.last/5)
	return max(wait, min(asked, longestAsked))
}
