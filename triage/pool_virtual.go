package triage

import (
	"fmt"
	"math"
	"strings"

	"goprof/profile"
	"goprof/profile/pools"
)

// Thousands of virtual threads can be stuck like a pool. A recording of waits does not contain virtual threads that no
// carrier runs, and no clock shows whether one of them has moved. So the rule compares two dumps: the same number of
// threads must wait for the same thing in both. Threads that wait for room, for a permit or for a result may have moved
// in between, and that would be healthy. They certainly stood still only if no carrier got a CPU. If carriers ran, it
// is not known whether these threads ran.

// stuckVirtual judges a pool of virtual threads of the last dump.
func (x *exam) stuckVirtual(p *pools.Pool) *stuckPool {
	if len(p.Members) < virtualPool {
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
	enough := int(math.Ceil(least * float64(len(p.Members))))
	if s.stuck < enough || s.before(x) < enough || float64(p.Count(pools.Idle)) > idleShare*float64(len(p.Members)) {
		return nil
	}
	stayed := s.stayed(x)
	s.still = stayed && x.unmoved(x.carrierThreads())
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
		if !s.asks(x) {
			return nil
		}
	}
	return s
}

// before returns how many threads of that name waited for the same in the first dump.
func (s *stuckPool) before(x *exam) (n int) {
	for _, p := range pools.Of(x.Dumps[0].Virtual, func(*profile.ThreadDump) bool { return true }) {
		if p.Name == s.Name {
			n = p.Count(s.on)
		}
	}
	return n
}

// stayed reports whether the threads that wait were at the same spot in the first dump.
func (s *stuckPool) stayed(x *exam) bool {
	was := map[uint64]pools.Spot{}
	for i := range x.Dumps[0].Virtual {
		t := &x.Dumps[0].Virtual[i]
		was[t.Virtual.ID] = pools.At(t)
	}
	for i := range s.Members {
		if m := &s.Members[i]; m.Doing == s.on && was[m.Virtual.ID] != m.Spot {
			return false
		}
	}
	return true
}

// carrierThreads returns the threads of all ForkJoinPools: carriers are such threads, and their names do not tell them
// from others.
func (x *exam) carrierThreads() (tids []int) {
	for i := range x.last.Threads {
		if strings.HasPrefix(x.last.Threads[i].Name, "ForkJoinPool") {
			tids = append(tids, x.last.Threads[i].TID)
		}
	}
	return tids
}

// asks finds the remote for which so many virtual threads wait: the process has opened nearly as many connections to
// it. There is a healthy case that looks similar: a server whose clients have opened as many connections, and whose
// threads wait for the next request. Then only a client library on their stacks shows that they wait for an answer.
func (s *stuckPool) asks(x *exam) bool {
	d := x.lastDump()
	most := 0
	for address, n := range d.Opened {
		if text := address.String(); n > most || n == most && text < s.peer {
			most, s.peer = n, text
		}
	}
	if float64(most) < stuckShare*float64(s.stuck) {
		return false
	}
	if float64(d.Accepted) < dryShare*float64(s.stuck) {
		return true
	}
	clients := 0
	for i := range s.Members {
		if m := &s.Members[i]; m.Doing == s.on && pools.IsClient(&m.Stack) {
			clients++
		}
	}
	return float64(clients) >= stuckShare*float64(s.stuck)
}
