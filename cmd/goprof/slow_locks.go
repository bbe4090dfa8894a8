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
	"goprof/profile"
	"goprof/session"
)

const (
	// locksEvery is the time between two readings of the owners of locks. Readings use at most 1/locksShare of a CPU,
	// with at least one reading in locksSeldom. A reading that takes longer than longestReading is dropped. After
	// mostSlow of these in a row, virtual threads without a carrier are left out.
	locksEvery, locksSeldom = 100 * time.Millisecond, 5 * time.Second
	locksShare              = 20
	longestReading          = time.Second
	mostSlow                = 3
	// mostHolds limits how many holds are kept. At most half of them are of peers.
	mostHolds = 1 << 18
)

// watchLocks records which thread waits for whose lock, and for which peer, until end is called. It has its own
// session, and stops no thread.
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
			all, err = readHolds(ctx, s, talk)
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

// errLongReading: after that time the threads wait for other locks.
var errLongReading = errors.New("a reading takes longer than " + longestReading.String())

// readHolds returns an error if every reading was dropped.
func readHolds(ctx context.Context, s *session.Session, talk io.Writer) (all []requests.Hold, failed error) {
	some, virtual, slow, peers, late := false, s.HasVirtual(), 0, 0, 0
	for wait := locksEvery; sleepUntil(ctx, time.Now().Add(wait)); {
		began, used := time.Now(), session.OwnCPU()
		opt := session.DumpOptions{Bare: true, Locks: true, Find: longestReading / 4, Cancel: ctx}
		if virtual {
			opt.Virtual = new(profile.VirtualWaits)
		}
		threads, err := s.Dump(opt)
		if ctx.Err() != nil || s.Process.Alive() != nil {
			break
		}
		took := time.Since(began)
		asked := time.Now()
		if err == nil {
			err = s.Peers(threads)
		}
		peersTook := time.Since(asked)
		known := peersTook <= longestReading
		if !known {
			late++
		}
		wait = min(max(locksEvery, locksShare*(session.OwnCPU()-used)), locksSeldom)
		if err == nil && took > longestReading {
			if slow++; virtual && slow == mostSlow {
				virtual = false
				fmt.Fprintf(talk, "goprof: from now on, who holds locks of virtual threads that no carrier runs is not read: %s\n",
					errLongReading)
			}
			err = errLongReading
		}
		if err != nil {
			failed = err
			continue
		}
		some, slow = true, 0
		for i := 0; i < len(threads) && len(all) < mostHolds; i++ {
			t := &threads[i]
			h := requests.Hold{At: began.Add(took / 2), Of: t.Ref()}
			switch w := t.WaitsFor; {
			case w != nil && (w.OfAnother() || w.Kind == profile.Task) && (w.Owner.TID != 0 || w.Owner.Virtual != 0):
				h.Lock, h.Owner = w.Class, w.Owner
			case t.Peer != "" && known && peers < mostHolds/2: // idle threads have peers, too
				peers++
				h.Peer, h.At = t.Peer, asked.Add(peersTook/2)
			default:
				continue
			}
			all = append(all, h)
		}
	}
	if late > 0 {
		fmt.Fprintf(talk, "goprof: %d readings of peers are left out: each took longer than %v\n", late, longestReading)
	}
	if peers == mostHolds/2 {
		fmt.Fprintln(talk, "goprof: peers are named for the first part of the recording only: threads waited for them "+
			"too often")
	}
	if some {
		failed = nil
	}
	return all, failed
}
