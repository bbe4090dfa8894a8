package ship

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"goprof/profile/batch"
)

// maxPending bounds the batches that wait to become messages. Making a message takes milliseconds, so many batches wait
// only if the disk hangs, or when an agent ends: the last batches of all of its JVMs, a thousand at most, come at once.
const maxPending = 1024

// lane delivers to one destination. One goroutine makes messages and spools them, another sends them.
type lane struct {
	to      Destination
	spool   *spool
	timeout time.Duration
	tell    func(string)

	mu      sync.Mutex
	pending []*batch.Batch
	closed  bool
	taken   bool // closed, and nothing is pending any more
	busy    int  // batches between pending and spool
	busySum int64
	count   Stats
	told    string // the last reported problem
	toldNow int    // number of lines since toldAt
	toldAt  time.Time
	wakeIn  chan struct{} // something is pending, or closed
	wakeOut chan struct{} // something is in the spool, or taken
}

func newLane(to Destination, s *spool, o *Options) *lane {
	l := &lane{to: to, spool: s, timeout: o.Timeout, tell: o.Tell,
		wakeIn: make(chan struct{}, 1), wakeOut: make(chan struct{}, 1)}
	l.count.Name, l.count.Recovered = to.Name(), s.amount()
	wake(l.wakeOut)
	return l
}

func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func (l *lane) offer(b *batch.Batch) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return
	}
	l.count.Offered.add(b.Looks())
	if len(l.pending) >= maxPending {
		l.count.Dropped.add(l.pending[0].Looks())
		l.pending = l.pending[1:]
	}
	l.pending = append(l.pending, b)
	wake(l.wakeIn)
}

// hasRoom reports whether another batch would drop nothing, if all batches have similar sizes.
func (l *lane) hasRoom() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.pending) == 0 && l.busy == 0 && l.spool.bytesNow() < l.spool.max/2 &&
		l.spool.amount().Batches < maxEntries/2
}

func (l *lane) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	wake(l.wakeIn)
}

// takeIn makes messages from batches and spools them, until the lane is closed and nothing is pending.
func (l *lane) takeIn() {
	for range l.wakeIn {
		for b := l.nextPending(); b != nil; b = l.nextPending() {
			l.take(b)
		}
		if l.isTaken() {
			wake(l.wakeOut)
			return
		}
	}
}

func (l *lane) nextPending() *batch.Batch {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.pending) == 0 {
		return nil
	}
	b := l.pending[0]
	l.pending = l.pending[1:]
	l.busy, l.busySum = 1, b.Looks()
	return b
}

func (l *lane) isTaken() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.taken = l.closed && len(l.pending) == 0
	return l.taken
}

func (l *lane) take(b *batch.Batch) {
	looks := b.Looks()
	message, err := l.to.Encode(b)
	if most := min(maxMessage, l.spool.max); err == nil && int64(len(message)) > most {
		err = fmt.Errorf("a message of %d bytes; the most is %d", len(message), most)
	}
	var dropped []Amount
	var diskErr error
	if err == nil {
		dropped, diskErr = l.spool.put(message, looks, time.Now())
	}
	l.mu.Lock()
	l.busy, l.busySum = 0, 0
	if err != nil {
		l.count.Refused.add(looks)
		l.failed(err)
	}
	for _, d := range dropped {
		l.count.Dropped.add(d.Looks)
	}
	if diskErr != nil {
		l.count.SpoolErrors++
		l.failed(diskErr)
	}
	l.mu.Unlock()
	wake(l.wakeOut)
}

// deliver sends the messages in the spool, the oldest first. It ends when ctx ends, or when the spool is empty and no
// more messages can come.
func (l *lane) deliver(ctx context.Context) {
	var pace backoff
	for ctx.Err() == nil {
		e := l.spool.hold()
		if e == nil {
			if l.isDone() || !l.sleep(ctx) {
				return
			}
			continue
		}
		if wait := l.attempt(ctx, e, &pace); wait > 0 {
			l.spool.release(e)
			if !sleepFor(ctx, wait) {
				return
			}
		}
	}
}

// isDone reports whether no more messages can come.
func (l *lane) isDone() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.taken && l.spool.amount().Batches == 0
}

// sleep waits for a message to send.
func (l *lane) sleep(ctx context.Context) bool {
	select {
	case <-l.wakeOut:
		return true
	case <-ctx.Done():
		return false
	}
}

func sleepFor(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// attempt tries to send one message. wait is the time until the next attempt. It is 0 if there will be none.
func (l *lane) attempt(ctx context.Context, e *spooled, pace *backoff) (wait time.Duration) {
	message, err := l.spool.read(e)
	if err == nil {
		within, cancel := context.WithTimeout(ctx, l.timeout)
		err = l.to.Send(within, message)
		cancel()
	}
	outcome := outcomeOf(e, err)
	if outcome != again {
		l.spool.removeFile(e) // before the lock, because a disk may hang
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if outcome == again {
		if ctx.Err() == nil {
			l.count.Retries++
			l.failed(err)
		}
		return pace.next(failureOf(err).After)
	}
	pace.reset()
	l.spool.drop(e)
	l.done(e, outcome, err)
	return 0
}

// outcome is what happens to a message after an attempt.
type outcome uint8

const (
	again outcome = iota
	sent
	refused
	torn
)

// maxDoubts bounds how often a message is sent that may itself be the reason for failures. These attempts take over
// half a minute.
const maxDoubts = 6

// outcomeOf returns what happens to a message after an attempt to send it.
func outcomeOf(e *spooled, err error) outcome {
	var partial *Partial
	var bad *damage
	switch {
	case err == nil || errors.As(err, &partial):
		return sent
	case errors.As(err, &bad):
		return torn
	case failureOf(err).Final:
		return refused
	case failureOf(err).Doubtful:
		if e.doubts++; e.doubts >= maxDoubts {
			return refused
		}
	}
	return again
}

// done counts a message that left the spool.
func (l *lane) done(e *spooled, f outcome, err error) {
	switch f {
	case sent:
		l.count.Sent.add(e.looks)
		l.count.SentBytes += e.size
		l.succeeded()
	case refused:
		l.count.Refused.add(e.looks)
	case torn:
		l.count.Damaged.add(e.looks)
	}
	if partial, ok := errors.AsType[*Partial](err); ok {
		l.count.Rejected += partial.Rejected
	}
	if err != nil {
		l.failed(err)
	}
}

// failed notes a problem, and reports it unless it equals the last reported one.
func (l *lane) failed(err error) {
	text := err.Error()
	l.count.LastError = text
	if text != l.told {
		l.told = text
		l.say(text)
	}
}

// mostTold bounds the lines in a minute: a server may refuse each message with a different text.
const mostTold = 10

// say reports a line, unless there were too many lines lately.
func (l *lane) say(text string) {
	now := time.Now()
	if now.Sub(l.toldAt) >= time.Minute {
		if n := l.toldNow - mostTold; n > 0 {
			l.tell(fmt.Sprintf("%s: %d more lines were left out", l.to.Name(), n))
		}
		l.toldAt, l.toldNow = now, 0
	}
	if l.toldNow++; l.toldNow <= mostTold {
		l.tell(l.to.Name() + ": " + text)
	}
}

func (l *lane) succeeded() {
	l.count.LastError = ""
	if l.told != "" {
		l.told = ""
		l.say("takes profiles again")
	}
}

// left reports the messages that were not delivered at the end. Those in memory are lost.
func (l *lane) left() error {
	lost := l.spool.dropMemory()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, a := range lost {
		l.count.Dropped.add(a.Looks)
	}
	kept := l.spool.amount()
	switch {
	case len(lost) > 0:
		return fmt.Errorf("%s: %d batches are lost: %s", l.to.Name(), len(lost), l.count.LastError)
	case kept.Batches > 0:
		return fmt.Errorf("%s: %d batches stay in the spool: %s", l.to.Name(), kept.Batches, l.count.LastError)
	}
	return nil
}

func (l *lane) stats() Stats {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.count
	s.Queued, s.QueuedBytes = l.spool.amount(), l.spool.bytesNow()
	for _, b := range l.pending {
		s.Queued.add(b.Looks())
	}
	s.Queued.Batches += int64(l.busy)
	s.Queued.Looks += l.busySum
	return s
}
