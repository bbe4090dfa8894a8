//go:build linux

package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"goprof/output"
	"goprof/output/requests"
	"goprof/session"
)

const (
	// locksEvery is how often slow reads who holds the locks that threads wait for. A reading takes no more than one part
	// in locksShare of the time, as long as it comes once in locksSeldom.
	locksEvery, locksSeldom = 100 * time.Millisecond, time.Second
	locksShare              = 20
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
		if err != nil {
			fmt.Fprintf(talk, "goprof: who holds locks is not shown: %s\n", output.Printable(err.Error()))
			found <- nil
			return
		}
		found <- readHolds(ctx, s)
	}()
	return func() []requests.Hold {
		stop()
		return <-found
	}
}

func readHolds(ctx context.Context, s *session.Session) (all []requests.Hold) {
	for wait := locksEvery; sleepUntil(ctx, time.Now().Add(wait)); {
		began := time.Now()
		threads, err := s.Dump(session.DumpOptions{Bare: true, Locks: true, Cancel: ctx})
		if s.Process.Alive() != nil {
			break
		}
		now := time.Now()
		for i := 0; i < len(threads) && err == nil && len(all) < mostHolds; i++ {
			if w := threads[i].WaitsFor; w != nil && w.OfAnother() && w.Owner.TID != 0 {
				all = append(all, requests.Hold{At: now, TID: threads[i].TID, Lock: w.Class, Owner: w.Owner})
			}
		}
		wait = min(max(locksEvery, locksShare*now.Sub(began)), locksSeldom)
	}
	return all
}
