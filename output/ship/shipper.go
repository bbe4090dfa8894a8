package ship

import (
	"context"
	"errors"
	"sync"
	"time"

	"goprof/profile/batch"
)

type Options struct {
	// Spool is the folder for undelivered messages. It is made if it does not exist. If it is empty, messages are only in
	// memory: a restart loses undelivered ones.
	Spool string
	// MaxBytes bounds the undelivered messages of each destination, on disk or, without Spool, in memory. 0 is the
	// default: 256 MB on disk and 32 MB in memory.
	MaxBytes int64
	// Timeout bounds one attempt to send; 0 is 30 s.
	Timeout time.Duration
	// Tell gets lines for an operator. It may be nil. It may be called at any time and must not block.
	Tell func(text string)
}

const (
	usualDisk    = 256 << 20
	usualMemory  = 32 << 20
	usualTimeout = 30 * time.Second
)

func (o *Options) fill() {
	if o.MaxBytes <= 0 {
		o.MaxBytes = usualDisk
		if o.Spool == "" {
			o.MaxBytes = usualMemory
		}
	}
	if o.Timeout <= 0 {
		o.Timeout = usualTimeout
	}
	if o.Tell == nil {
		o.Tell = func(string) {}
	}
}

type Shipper struct {
	lanes   []*lane
	cancel  context.CancelFunc
	running sync.WaitGroup
	locks   []func()
}

// New opens the spool and begins to send what an earlier goprof has left there. An error is about the spool.
func New(o Options, to ...Destination) (*Shipper, error) {
	o.fill()
	ctx, cancel := context.WithCancel(context.Background())
	s := &Shipper{cancel: cancel}
	for _, d := range to {
		spool, unlock, err := openSpool(&o, d.Name())
		if err != nil {
			cancel()
			s.unlock()
			return nil, err
		}
		s.locks = append(s.locks, unlock)
		s.lanes = append(s.lanes, newLane(d, spool, &o))
	}
	for _, l := range s.lanes {
		s.running.Go(l.takeIn)
		s.running.Go(func() { l.deliver(ctx) })
	}
	return s, nil
}

// Offer gives a batch to every destination. It never waits. If too many batches wait for a destination's encoding, the
// oldest of them is dropped and counted. A batch without samples is not sent.
func (s *Shipper) Offer(b *batch.Batch) {
	if len(b.Samples) == 0 {
		return
	}
	for _, l := range s.lanes {
		l.offer(b)
	}
}

// Give is Offer for a caller that can wait: it waits until every destination has room for the batch without dropping
// another. When ctx ends, it gives the batch all the same.
func (s *Shipper) Give(ctx context.Context, b *batch.Batch) {
	for _, l := range s.lanes {
		for !l.hasRoom() && sleepFor(ctx, giveWait) {
		}
	}
	s.Offer(b)
}

const giveWait = 5 * time.Millisecond

// Close takes no more batches, puts the waiting ones into the spool, and keeps sending until all messages are delivered
// or ctx ends. Undelivered messages stay in the spool. Without a spool they are lost, and counted as dropped. The error
// says that messages are left.
func (s *Shipper) Close(ctx context.Context) error {
	for _, l := range s.lanes {
		l.close()
	}
	done := make(chan struct{})
	go func() { s.running.Wait(); close(done) }()
	select {
	case <-done:
	case <-ctx.Done():
		s.cancel()
		<-done
	}
	s.cancel()
	s.unlock()
	var all []error
	for _, l := range s.lanes {
		all = append(all, l.left())
	}
	return errors.Join(all...)
}

func (s *Shipper) unlock() {
	for _, unlock := range s.locks {
		unlock()
	}
	s.locks = nil
}

// Stats returns the counts of each destination, in the order of New.
func (s *Shipper) Stats() []Stats {
	all := make([]Stats, 0, len(s.lanes))
	for _, l := range s.lanes {
		all = append(all, l.stats())
	}
	return all
}
