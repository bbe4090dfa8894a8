package triage

import (
	"fmt"

	"goprof/profile"
	"goprof/profile/naming"
	"goprof/profile/pools"
)

// An event loop is one thread that serves many connections. It should wait only for events, never in the code that
// handles an event: while it waits there, nothing happens on its connections. So a single thread is a finding. Time in
// which the handler computes does not count here.

// blockedShare is the part of its time that an event loop must wait inside its handlers.
const blockedShare = 0.7

// blockedLoop is an event loop that waits inside a handler.
type blockedLoop struct {
	pools.Member
	share float64
}

func (x *exam) blockedLoops() *suspicion {
	last := x.lastDump()
	var blocked []blockedLoop
	loops := map[string]int{}
	for i := range last.Threads {
		t := &last.Threads[i]
		w := x.waits[t.TID]
		if t.TID == 0 || !x.isApp(t.TID) || !pools.RunsEventLoop(&t.Stack) {
			continue
		}
		loops[naming.Pool(t.Name)]++
		if w == nil || w.total < leastLooks {
			continue
		}
		inside := waits{total: w.total, spots: map[pools.Spot]int64{}}
		share := 0.0
		for spot, n := range w.spots {
			if spot.Doing != pools.Working && spot.Doing != pools.Idle {
				inside.spots[spot] = n
				share += w.doing(spot)
			}
		}
		if share >= blockedShare {
			most, _ := inside.mostly()
			blocked = append(blocked, blockedLoop{pools.Member{ThreadDump: withPeer(t, last.Remotes), Spot: most}, share})
		}
	}
	if len(blocked) == 0 {
		return nil
	}
	return x.loopsSuspicion(blocked, loops)
}

func (x *exam) loopsSuspicion(blocked []blockedLoop, loops map[string]int) *suspicion {
	b := blocked[0]
	s := &suspicion{sure: 0.93, severity: profile.Warning,
		claim: fmt.Sprintf("The event loop %s is blocked for %s of its time: it %s.", b.Ref(), percent(b.share),
			b.Text()),
		next: fmt.Sprintf("goprof dump --pid %d  (which handler waits; have another thread do that)", x.PID)}
	name := naming.Pool(b.Name)
	same := 0
	for _, b := range blocked {
		if naming.Pool(b.Name) == name {
			same++
		}
	}
	s.evidence = append(s.evidence, fmt.Sprintf("%d of %d event loops %s wait inside a handler", same, loops[name], name))
	if load := x.loadOf(b.TID); load != "" {
		s.evidence = append(s.evidence, load)
	}
	for _, b := range blocked[1:min(len(blocked), 4)] {
		s.evidence = append(s.evidence, fmt.Sprintf("%s, too: it %s, for %s of its time", b.Ref(), b.Text(),
			percent(b.share)))
	}
	return s
}
