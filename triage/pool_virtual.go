package triage

import (
	"fmt"
	"math"
	"strings"
	"time"

	"goprof/profile"
	"goprof/profile/pools"
	"goprof/triage/vitals"
)

// Thousands of virtual threads can be stuck like a pool. A recording of waits does not contain virtual threads without
// a carrier, and no clock shows whether such a thread has moved. So the rule compares two dumps: the same number of
// threads must wait for the same thing in both. Threads that wait for room, for a permit or for a result may have moved
// in between, and that would be healthy. They stood still if no carrier got a CPU, or if the bytes of their frames are
// the same (profile.ThreadDump.FrameSum). Otherwise it is not known. Threads that repeatedly read from a connection or
// enter a monitor may have the same frames each time.
//
// There may be as many virtual threads as there are requests. In a healthy server nearly all of them may wait for an
// answer for some milliseconds. So answers must be slow: half of the threads that wait for one have the same frames as
// a second ago.

// stuckVirtual judges a pool of virtual threads of the last dump.
func (x *exam) stuckVirtual(p *pools.Pool) *stuckPool {
	idle := p.Count(pools.Idle)
	active := len(p.Members) - x.lastDump().markServing(p)
	if active < virtualPool || float64(idle) > idleShare*float64(len(p.Members)) {
		return nil
	}
	s := &stuckPool{Pool: p, virtual: true}
	for i := range p.Members {
		s.members = append(s.members, poolMember{Spot: p.Members[i].Spot})
	}
	for d := pools.ForResource; d <= pools.ForPeer; d++ {
		if s.on == 0 || s.count(d) > s.stuck {
			s.on, s.stuck = d, s.count(d)
		}
	}
	least := stuckShare
	if s.on == pools.ForResource {
		least = dryShare
	}
	enough := int(math.Ceil(least * float64(active)))
	before := s.before(x)
	if s.stuck < enough || before < enough {
		return nil
	}
	stayed, same := s.stayed(x)
	// If a thread has left its wait since the first dump, a resource was returned in between.
	same = same && before == s.stuck
	s.still = stayed && (same && s.on != pools.ForPeer || x.unmoved(x.carrierThreads()))
	switch s.on {
	case pools.ForRoom, pools.ForPermit, pools.ForResult, pools.ForProcess:
		if x.served(s.on, nil) {
			return nil
		}
		if !s.still {
			if stayed {
				x.cannotTell(fmt.Sprintf("%d of %d %s %s in the first and the last dump; carriers ran other virtual threads, "+
					"so whether these have moved is not known", s.stuck, len(s.Members), s.who(), waitWords[s.on].wait))
			}
			return nil
		}
	case pools.ForPeer:
		if !s.asks(x) || !x.slowAnswers(s) {
			return nil
		}
		if same {
			s.slow, s.slowFor = s.stuck, x.watched()
		}
	}
	return s
}

// markServing marks the threads of a server that wait for the next request as idle, and counts them. Such a thread has
// no client library on its stack, and clients have opened at least half as many connections.
func (d *Dump) markServing(p *pools.Pool) int {
	var serving []*pools.Member
	for i := range p.Members {
		if m := &p.Members[i]; m.Doing == pools.ForPeer && !pools.IsClient(&m.Stack) {
			serving = append(serving, m)
		}
	}
	if float64(d.Accepted) < dryShare*float64(len(serving)) {
		return 0
	}
	for _, m := range serving {
		m.Doing = pools.Idle
	}
	return len(serving)
}

// slowAnswers reports whether half of the threads that wait for an answer did so in the same frames a second ago.
func (x *exam) slowAnswers(s *stuckPool) bool {
	last := x.lastDump()
	for i := range s.Members {
		if m := &s.Members[i]; m.Doing == s.on && x.Earlier.Was[m.Virtual.ID] == m.FrameSum && m.FrameSum != 0 {
			s.slow++
		}
	}
	s.slowFor = last.At.Add(last.Took).Sub(x.Earlier.At)
	why, n := "", len(x.Readings)
	most := float64(s.slow) >= dryShare*float64(s.stuck)
	switch {
	case s.slowFor < slowAnswer:
		why = "goprof had no CPU to look at them twice"
	case len(x.Earlier.Was) == 0:
		why = "they could not be read twice"
	case !most && n > 1 && vitals.Between(x.Readings[n-2], x.last).Collections.Or(0) > 0:
		why = "a collector moved objects"
	}
	if why != "" {
		x.cannotTell(fmt.Sprintf("%d of %d %s wait for an answer; %s, so it is not known for how long", s.stuck,
			len(s.Members), s.who(), why))
	}
	return s.slowFor >= slowAnswer && most
}

// slowAnswer is the least wait for a slow answer.
const slowAnswer = 500 * time.Millisecond

// before returns how many threads of the pool's name waited for the same thing in the first dump.
func (s *stuckPool) before(x *exam) (n int) {
	for _, p := range pools.Of(x.Dumps[0].Virtual, func(*profile.ThreadDump) bool { return true }) {
		if p.Name == s.Name {
			x.Dumps[0].markServing(p)
			n = p.Count(s.on)
		}
	}
	return n
}

// stayed reports whether the waiting threads were at the same spot in the first dump, and whether they had the same
// frames.
func (s *stuckPool) stayed(x *exam) (spot, frames bool) {
	was := map[uint64]*profile.ThreadDump{}
	for i := range x.Dumps[0].Virtual {
		was[x.Dumps[0].Virtual[i].Virtual.ID] = &x.Dumps[0].Virtual[i]
	}
	frames = true
	for i := range s.Members {
		m := &s.Members[i]
		if m.Doing != s.on {
			continue
		}
		t := was[m.Virtual.ID]
		if t == nil || pools.At(t) != m.Spot {
			return false, false
		}
		frames = frames && t.FrameSum == m.FrameSum && m.FrameSum != 0 && m.State != "blocked"
	}
	return true, frames
}

// carrierThreads returns the threads of all ForkJoinPools. Carriers are such threads, and their names do not
// distinguish them from others.
func (x *exam) carrierThreads() (tids []int) {
	for i := range x.last.Threads {
		if strings.HasPrefix(x.last.Threads[i].Name, "ForkJoinPool") {
			tids = append(tids, x.last.Threads[i].TID)
		}
	}
	return tids
}

// asks finds the remote that the virtual threads wait for: a remote to which the process has opened nearly as many
// connections as threads wait. If most of the threads wait for threads of a client library, it finds the library's
// method instead, because nothing shows which connections are the library's.
func (s *stuckPool) asks(x *exam) bool {
	d := x.lastDump()
	calls := s.tally(func(m *poolMember) string { return m.From })
	if call := profile.ByCount(calls)[0]; call != "" {
		s.peer = call
		return true
	}
	most := 0
	for address, n := range d.Opened {
		if text := address.String(); n > most || n == most && text < s.peer {
			most, s.peer = n, text
		}
	}
	return float64(most) >= stuckShare*float64(s.stuck)
}
