package ship

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"goprof/profile"
	"goprof/profile/batch"
)

// server is a destination in memory. Its messages are numbers of batches.
type server struct {
	mu     sync.Mutex
	name   string
	got    []string
	answer func(try int) error // nil: the server takes every message
	tries  int
}

func (s *server) Name() string {
	if s.name == "" {
		return "test"
	}
	return s.name
}

func (s *server) Encode(b *batch.Batch) ([]byte, error) {
	if b.Meta.Host == "bad" {
		return nil, Final("no message can be made of it")
	}
	return []byte(b.Meta.Host), nil
}

func (s *server) Send(ctx context.Context, message []byte) error {
	s.mu.Lock()
	s.tries++
	try, answer := s.tries, s.answer
	s.mu.Unlock()
	var err error
	if answer != nil {
		err = answer(try)
	}
	if err == errSilent {
		<-ctx.Done()
		return ctx.Err()
	}
	var partial *Partial
	if err == nil || errors.As(err, &partial) {
		s.mu.Lock()
		s.got = append(s.got, string(message))
		s.mu.Unlock()
	}
	return err
}

var errSilent = errors.New("the server says nothing")

func batchOf(name string) *batch.Batch {
	return &batch.Batch{Meta: profile.Meta{Host: name}, Samples: []batch.Sum{{Stack: &profile.Stack{},
		Points: []batch.Point{{Looks: 3}}}}}
}

func batches(n int) (names []string) {
	for i := range n {
		names = append(names, fmt.Sprintf("batch %d", i))
	}
	return names
}

func start(t *testing.T, o Options, to ...Destination) *Shipper {
	t.Helper()
	s, err := New(o, to...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// closed ends a shipper within the given time. It checks that every batch is accounted for.
func closed(t *testing.T, s *Shipper, within time.Duration) (err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	err = s.Close(ctx)
	for _, st := range s.Stats() {
		in := st.Offered.Batches + st.Recovered.Batches
		out := st.Sent.Batches + st.Refused.Batches + st.Dropped.Batches + st.Damaged.Batches + st.Queued.Batches
		if in != out {
			t.Errorf("%d batches went in, of %d it is known what became of them: %+v", in, out, st)
		}
	}
	return err
}

// TestFaults: what happens to five batches under each fault. The clock is simulated: an hour takes no time.
func TestFaults(t *testing.T) {
	const down = time.Minute
	refusal := Final("400: bad")
	for name, c := range map[string]struct {
		answer func(began time.Time, try int) error
		sent   int64
		check  func(Stats) bool
	}{
		"takes all": {func(time.Time, int) error { return nil }, 5, func(s Stats) bool { return s.Retries == 0 }},
		"down for a minute": {func(began time.Time, _ int) error {
			if time.Since(began) < down {
				return errors.New("connection refused")
			}
			return nil
		}, 5, func(s Stats) bool { return s.Retries >= 5 && s.Retries < 10 && s.LastError == "" }},
		"429 with Retry-After": {func(_ time.Time, try int) error {
			if try == 1 {
				return &Failure{Err: errors.New("429"), After: 3 * time.Minute}
			}
			return nil
		}, 5, func(s Stats) bool { return s.Retries == 1 }},
		"500 now and then": {func(_ time.Time, try int) error {
			if try%2 == 1 {
				return errors.New("500")
			}
			return nil
		}, 5, func(s Stats) bool { return s.Retries == 5 }},
		"refuses the second": {func(_ time.Time, try int) error {
			if try == 2 {
				return refusal
			}
			return nil
		}, 4, func(s Stats) bool { return s.Refused == Amount{1, 3} && s.LastError == "" }},
		"doubts the first for ever": {func(_ time.Time, try int) error {
			if try <= maxDoubts {
				return &Failure{Err: errors.New("500"), Doubtful: true}
			}
			return nil
		}, 4, func(s Stats) bool { return s.Refused == Amount{1, 3} && s.Retries == maxDoubts-1 }},
		"silent once": {func(_ time.Time, try int) error {
			if try == 1 {
				return errSilent
			}
			return nil
		}, 5, func(s Stats) bool { return s.Retries == 1 }},
		"takes a part": {func(time.Time, int) error { return &Partial{Rejected: 2, Message: "no"} }, 5,
			func(s Stats) bool { return s.Rejected == 10 && s.Retries == 0 }},
	} {
		for _, disk := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, disk %v", name, disk), func(t *testing.T) {
				var o Options
				if disk {
					o.Spool = t.TempDir()
				}
				synctest.Test(t, func(t *testing.T) {
					began := time.Now()
					to := &server{answer: func(try int) error { return c.answer(began, try) }}
					s := start(t, o, to)
					for _, name := range batches(5) {
						s.Offer(batchOf(name))
					}
					if err := closed(t, s, time.Hour); err != nil {
						t.Error(err)
					}
					st := s.Stats()[0]
					if st.Sent.Batches != c.sent || st.Sent.Looks != 3*c.sent || !c.check(st) {
						t.Errorf("%+v", st)
					}
					if !slices.IsSorted(to.got) {
						t.Errorf("not the oldest first: %q", to.got)
					}
					if name == "429 with Retry-After" && time.Since(began) < 3*time.Minute {
						t.Errorf("did not wait as long as it was asked to: %v", time.Since(began))
					}
				})
			})
		}
	}
}

// TestSurvivesRestart: batches that a first goprof cannot deliver are delivered by a second one, in order, and before
// new ones.
func TestSurvivesRestart(t *testing.T) {
	o := Options{Spool: t.TempDir()}
	synctest.Test(t, func(t *testing.T) {
		to := &server{answer: func(int) error { return errors.New("down") }}
		s := start(t, o, to)
		for _, name := range batches(4) {
			s.Offer(batchOf(name))
		}
		if err := closed(t, s, time.Minute); err == nil {
			t.Error("nothing is said of what is left")
		}
		if st := s.Stats()[0]; st.Queued != (Amount{4, 12}) {
			t.Errorf("%+v", st)
		}
		to.answer = nil
		s = start(t, o, to)
		s.Offer(batchOf("batch 9"))
		if err := closed(t, s, time.Minute); err != nil {
			t.Error(err)
		}
		if want := append(batches(4), "batch 9"); !slices.Equal(to.got, want) {
			t.Errorf("%q", to.got)
		}
		if st := s.Stats()[0]; st.Recovered != (Amount{4, 12}) || st.Sent != (Amount{5, 15}) {
			t.Errorf("%+v", st)
		}
	})
}

// TestMemoryIsLostAndCounted: without a spool, undelivered batches are dropped at the end, and counted.
func TestMemoryIsLostAndCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, Options{}, &server{answer: func(int) error { return errors.New("down") }})
		s.Offer(batchOf("a"))
		if err := closed(t, s, time.Minute); err == nil {
			t.Error("no error")
		}
		if st := s.Stats()[0]; st.Dropped != (Amount{1, 3}) {
			t.Errorf("%+v", st)
		}
	})
}

// TestOldestGoesFirst: a full spool drops its oldest batch. Problems of one destination do not affect another.
func TestOldestGoesFirst(t *testing.T) {
	for _, dir := range []string{"", t.TempDir()} {
		synctest.Test(t, func(t *testing.T) {
			var isDown atomic.Bool
			isDown.Store(true)
			ill := &server{name: "ill", answer: func(int) error {
				if isDown.Load() {
					return errors.New("down")
				}
				return nil
			}}
			well := &server{name: "well"}
			s := start(t, Options{Spool: dir, MaxBytes: 3 * int64(len("batch 0"))}, ill, well)
			for _, name := range batches(9) {
				s.Offer(batchOf(name))
				time.Sleep(10 * time.Second)
			}
			isDown.Store(false)
			if err := closed(t, s, time.Hour); err != nil {
				t.Error(err)
			}
			// The first batch may be in an attempt, and then it is not dropped.
			if !slices.Equal(ill.got, []string{"batch 6", "batch 7", "batch 8"}) &&
				!slices.Equal(ill.got, []string{"batch 0", "batch 7", "batch 8"}) {
				t.Errorf("%q", ill.got)
			}
			if st := s.Stats(); st[0].Dropped.Batches != 6 || st[1].Sent.Batches != 9 {
				t.Errorf("%+v", st)
			}
		})
	}
}

// TestOfferNeverWaits: while encoding a message hangs, Offer returns, and the oldest batch is dropped.
func TestOfferNeverWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to := &hanging{blocked: make(chan struct{})}
		s := start(t, Options{}, to)
		for range maxPending + 11 {
			s.Offer(batchOf("x"))
			synctest.Wait()
		}
		if st := s.Stats()[0]; st.Dropped.Batches != 10 {
			t.Errorf("%+v", st)
		}
		close(to.blocked)
		if err := closed(t, s, time.Hour); err != nil {
			t.Error(err)
		}
	})
}

// hanging is a destination that encodes no message until the test allows it.
type hanging struct {
	server
	blocked chan struct{}
}

func (h *hanging) Encode(b *batch.Batch) ([]byte, error) {
	<-h.blocked
	return h.server.Encode(b)
}

// TestGiveWaits: Give waits, so it loses nothing, however slow the server is.
func TestGiveWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to := &server{answer: func(int) error { time.Sleep(time.Second); return nil }}
		s := start(t, Options{MaxBytes: 200}, to)
		for _, name := range batches(200) {
			s.Give(context.Background(), batchOf(name))
		}
		if err := closed(t, s, time.Hour); err != nil || len(to.got) != 200 {
			t.Errorf("%v, %d arrived: %+v", err, len(to.got), s.Stats()[0])
		}
	})
}

// TestNoMessage: a batch that cannot be encoded counts as refused. The other batches are sent.
func TestNoMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to := &server{}
		s := start(t, Options{}, to)
		s.Offer(batchOf("bad"))
		s.Offer(batchOf("good"))
		if err := closed(t, s, time.Hour); err != nil || !slices.Equal(to.got, []string{"good"}) {
			t.Errorf("%v %q", err, to.got)
		}
	})
}

func TestBackoff(t *testing.T) {
	var b backoff
	for i, want := range []time.Duration{1, 2, 4, 8, 16, 32, 60, 60} {
		want *= time.Second
		if got := b.next(0); got < want*79/100 || got > want*121/100 {
			t.Errorf("wait %d is %v, want about %v", i, got, want)
		}
	}
	if got := b.next(24 * time.Hour); got != longestAsked {
		t.Errorf("a server may ask for %v", got)
	}
	b.reset()
	if got := b.next(0); got > 2*time.Second {
		t.Errorf("after a reset it is %v", got)
	}
}

// TestTooLargeForTheSpool: a message that does not fit into an empty spool drops no other message, and is reported.
func TestTooLargeForTheSpool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []string
		to := &server{answer: func(int) error { return errors.New("down") }}
		s := start(t, Options{MaxBytes: 20, Tell: func(text string) { told = append(told, text) }}, to)
		s.Offer(batchOf("small"))
		s.Offer(batchOf("much larger than the whole spool"))
		synctest.Wait()
		if st := s.Stats()[0]; st.Refused.Batches != 1 || st.Dropped.Batches != 0 || st.Queued.Batches != 1 {
			t.Errorf("%+v", st)
		}
		if !slices.Contains(told, "test: a message of 32 bytes; the most is 20") {
			t.Errorf("%q", told)
		}
		closed(t, s, time.Second)
	})
}

// TestTellsLittle: a server refuses each message with a different text. That does not fill the log.
func TestTellsLittle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []string
		to := &server{answer: func(try int) error { return Final("400: request %d is bad", try) }}
		s := start(t, Options{Tell: func(text string) { told = append(told, text) }}, to)
		for _, name := range batches(60) {
			s.Offer(batchOf(name))
		}
		synctest.Wait()
		if len(told) != mostTold {
			t.Errorf("%d lines: %q", len(told), told)
		}
		time.Sleep(time.Minute)
		s.Offer(batchOf("later"))
		synctest.Wait()
		if len(told) != mostTold+2 || told[mostTold] != "test: 50 more lines were left out" {
			t.Errorf("%q", told[mostTold:])
		}
		closed(t, s, time.Minute)
	})
}
