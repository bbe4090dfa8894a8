//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"goprof/output"
	"goprof/output/requests"
	"goprof/session"
)

const (
	// locksEvery is how often slow reads who holds the locks that threads wait for. A reading takes no more than one part
	// in locksShare of the time, as long as it comes once in locksSeldom. One that takes longer than longestReading does
	// not count.
	locksEvery, locksSeldom = 100 * time.Millisecond, 5 * time.Second
	locksShare              = 20
	longestReading          = time.Second
	// mostHolds bounds what is kept of that.
	mostHolds = 1 << 18
)

// watchLocks notes which thread waits for whose lock, until the function is called that it returns. It has a session of
// its own, and stops no thread.
func watchLocks(ctx context.Context, talk io.Writer, pid int) (end func() []requests.Hold) {
	ctx, stop := context.WithCancel(ctx)
	found := make(chan []requests.Hold, 1)
	go func() {
		s, err := session.Attach(pid)
		if err == nil {
			defer s.Close()
			err = s.LocksKnown()
		}
		var all []requests.Hold
		if err == nil {
			all, err = readHolds(ctx, s)
		}
		if err != nil {
			fmt.Fprintf(talk, "goprof: who holds locks is not shown: %s\n", output.Printable(err.Error()))
		}
		found <- all
	}()
	return func() []requests.Hold {
		stop()
		return <-found
	}
}

// errLongReading: by then the threads wait for other locks.
var errLongReading = errors.New("a reading takes longer than " + longestReading.String())

// readHolds returns an error if no reading counts.
func readHolds(ctx context.Context, s *session.Session) (all []requests.Hold, failed error) {
	some := false
	for wait := locksEvery; sleepUntil(ctx, time.Now().Add(wait)); {
		began := time.Now()
		threads, err := s.Dump(session.DumpOptions{Bare: true, Locks: true, Cancel: ctx})
		if ctx.Err() != nil || s.Process.Alive() != nil {
			break
		}
		took := time.Since(began)
		wait = min(max(locksEvery, locksShare*took), locksSeldom)
		if err == nil && took > longestReading {
			err = errLongReading
		}
		if err != nil {
			failed = err
			continue
		}
		some = true
		for i := 0; i < len(threads) && len(all) < mostHolds; i++ {
			if w := threads[i].WaitsFor; w != nil && w.OfAnother() && w.Owner.TID != 0 {
				all = append(all, requests.Hold{At: began.Add(took / 2), TID: threads[i].TID, Lock: w.Class, Owner: w.Owner})
			}
		}
	}
	if some {
		failed = nil
	}
	return all, failed
}
