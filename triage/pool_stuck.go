package triage

import (
	"cmp"
	"slices"
	"time"

	"goprof/profile"
	"goprof/profile/pools"
	"goprof/triage/vitals"
)

// A pool is stuck if hardly any of its threads is idle or works. They wait inside their tasks, and the waits do not
// end. Package pools distinguishes waits inside a task from waits for work. Three kinds of pools are stuck:
//
//   - The threads wait for a resource (a connection), and the pool of resources has none left. A thread may still get
//     one now and then, so the rule judges the time for which threads wait. It is also enough that some threads wait
//     for it and all others stand still, because those may hold the resources.
//   - The threads wait for the resolution of a host name. The rule judges them in the same way.
//   - The threads wait for other threads or processes: for room in a queue, a permit, a result, a child process. In a
//     healthy program threads wait so, too, while others work. So the rule requires that none of them moves at all.
const (
	// stuckShare is the part of a pool that must be stuck. For threads that wait for a resource it is dryShare, because
	// the other threads may have the resource.
	stuckShare = 0.9
	dryShare   = 0.5
	// idleShare is the largest part of the pool's time in waits for work.
	idleShare = 0.1
	// stillShare is the least part of the looks in which a thread that stands still is at one spot. Some looks fail.
	stillShare = 0.95
	// virtualPool is the least number of virtual threads in a pool. They have no pool of a fixed size that could run
	// out.
	virtualPool = 10
	// busyElsewhere is the least number of CPUs that other threads of the program, or child processes, use or want if
	// they are at work.
	busyElsewhere = 0.1
)

func poolStuck(x *exam) *suspicion {
	if x.Wall == nil || len(x.Dumps) < 2 {
		return x.cannotTell("what the threads of a pool wait for could not be recorded")
	}
	if x.Stopped {
		return nil
	}
	for _, d := range x.Dumps {
		if d.VirtualErr != "" {
			x.cannotTell("virtual threads could not be read: " + d.VirtualErr)
			break
		}
	}
	s, stuck := x.blockedLoops(), x.stuckPools()
	if s == nil {
		if len(stuck) == 0 {
			return nil
		}
		s, stuck = stuck[0].suspicion(x), stuck[1:]
	}
	for _, other := range stuck[:min(len(stuck), 3)] {
		s.evidence = append(s.evidence, "also: "+other.claim(x))
	}
	return s
}

// stuckPools returns the stuck pools, the likeliest cause first. Threads that wait for results may wait for threads
// that wait for a connection.
func (x *exam) stuckPools() (list []*stuckPool) {
	dead := x.deadlocked()
	for _, p := range pools.Of(x.lastDump().Threads, func(t *profile.ThreadDump) bool {
		return t.TID != 0 && x.isApp(t.TID) && !dead[t.TID]
	}) {
		if s := x.stuckPool(p); s != nil {
			list = append(list, s)
		}
	}
	all := func(*profile.ThreadDump) bool { return true }
	for _, p := range pools.Of(x.lastDump().Virtual, all) {
		if s := x.stuckVirtual(p); s != nil {
			list = append(list, s)
		}
	}
	slices.SortStableFunc(list, func(a, b *stuckPool) int {
		return cmp.Or(cmp.Compare(causeRank(a.on), causeRank(b.on)), cmp.Compare(b.stuck, a.stuck))
	})
	return list
}

// causeRank orders waits: a wait with a lower rank is more often the cause of the others.
func causeRank(d pools.Doing) int {
	return slices.Index([]pools.Doing{pools.ForName, pools.ForProcess, pools.ForResource, pools.ForPeer, pools.ForLock,
		pools.ForRoom, pools.ForPermit, pools.ForResult}, d)
}

// stuckPool is a pool that is stuck, with the kind of its wait.
type stuckPool struct {
	*pools.Pool
	virtual bool
	on      pools.Doing
	stuck   int  // members that wait for on
	still   bool // none of them has moved
	members []poolMember
	peer    string // the address or method that virtual threads wait for
	// slow is the number of virtual threads that have not left their frames for slowFor.
	slow    int
	slowFor time.Duration
}

// poolMember is a thread of a stuck pool, with what it did for most of the time.
type poolMember struct {
	pools.Spot
	remote string // the other end of the connection that it waits for
}

// stuckPool judges a pool of platform threads.
func (x *exam) stuckPool(p *pools.Pool) *stuckPool {
	if len(p.Members) < poolOf && !x.awaitsItself(p) {
		return nil
	}
	s := &stuckPool{Pool: p}
	var shares [pools.ForPeer + 1]float64 // parts of the pool's time
	still := map[pools.Doing][]int{}
	dry := 0
	for i := range p.Members {
		m := &p.Members[i]
		w := x.waits[m.TID]
		if w == nil || w.total < leastLooks {
			return nil // the pool is too young, or has no looks
		}
		most, looks := w.mostly()
		for spot, n := range w.spots {
			shares[spot.Doing] += float64(n) / float64(w.total) / float64(len(p.Members))
		}
		s.members = append(s.members, poolMember{most, x.remoteOf(m.TID)})
		if most.Doing == pools.ForResource && float64(looks) >= remoteShare*float64(w.total) {
			dry++
		}
		if float64(looks) >= stillShare*float64(w.total) && x.sameInDumps(m.TID, most) {
			still[most.Doing] = append(still[most.Doing], m.TID)
		}
	}
	switch {
	case shares[pools.Idle] > idleShare:
		return nil
	case shares[pools.ForResource] >= dryShare, s.held(dry, still):
		s.on = pools.ForResource
	case shares[pools.ForName] >= stuckShare:
		s.on = pools.ForName
	case !s.standsStill(x, still):
		return nil
	}
	s.stuck = s.count(s.on)
	s.still = x.unmoved(still[s.on]) && len(still[s.on]) == s.stuck
	if s.stuck < min(poolOf, len(p.Members)) {
		return nil
	}
	return s
}

// awaitsItself reports whether a small pool waits for its own subtasks: each of its threads waits for a task, and no
// other thread of the program can be working on one. Other waits of one or two threads may be normal.
func (x *exam) awaitsItself(p *pools.Pool) bool {
	if len(p.Members) < 2 {
		return false
	}
	waits := map[int]bool{}
	for i := range p.Members {
		if !pools.AwaitsTask(&p.Members[i].Stack) {
			return false
		}
		waits[p.Members[i].TID] = true
	}
	last := x.lastDump()
	for i := range last.Threads {
		if t := &last.Threads[i]; t.TID != 0 && x.isApp(t.TID) && !waits[t.TID] && pools.MayRunTask(t) {
			return false
		}
	}
	return true
}

// held reports whether some threads wait for a resource, and nearly all others stand still in another wait.
func (s *stuckPool) held(dry int, still map[pools.Doing][]int) bool {
	others := 0
	for d, tids := range still {
		if d != pools.ForResource && d != pools.Idle && d != pools.Working {
			others += len(tids)
		}
	}
	return dry >= poolOf && float64(dry+others) >= stuckShare*float64(len(s.Members))
}

// standsStill finds the commonest wait of the threads that do not move, if these are nearly all threads of the pool.
func (s *stuckPool) standsStill(x *exam, still map[pools.Doing][]int) bool {
	var tids []int
	for _, d := range []pools.Doing{pools.ForRoom, pools.ForPermit, pools.ForResult, pools.ForProcess, pools.ForResource} {
		tids = append(tids, still[d]...)
		if n := len(still[d]); n > len(still[s.on]) || s.on == 0 && n > 0 {
			s.on = d
		}
	}
	waiting := len(tids)
	for _, tid := range still[pools.ForPeer] { // these may hold what the others wait for
		if x.remoteOf(tid) != "" {
			waiting++
		}
	}
	return s.on != 0 && float64(waiting) >= stuckShare*float64(len(s.Members)) && x.unmoved(tids) &&
		!x.served(s.on, tids)
}

// served reports whether another thread works for the threads that wait.
func (x *exam) served(on pools.Doing, tids []int) bool {
	switch on {
	case pools.ForResult:
		return x.atWork(tids) >= busyElsewhere
	case pools.ForProcess:
		used := 0.0
		for _, c := range x.Children {
			if used += c.CPU; c.Began {
				return true
			}
		}
		return used >= busyElsewhere || x.Children == nil
	}
	return false
}

// atWork returns how many CPUs the program's other threads use or want.
func (x *exam) atWork(except []int) (cpus float64) {
	for i := range x.Rates.Threads {
		if t := &x.Rates.Threads[i]; x.isApp(t.TID) && !slices.Contains(except, t.TID) {
			cpus += t.CPU.Or(0) + t.Waited.Or(0)
		}
	}
	return cpus
}

// mostly returns the spot of a thread in most looks.
func (w *waits) mostly() (most pools.Spot, looks int64) {
	for spot, n := range w.spots {
		if n > looks || n == looks && spot.Site < most.Site {
			most, looks = spot, n
		}
	}
	return most, looks
}

func (x *exam) sameInDumps(tid int, at pools.Spot) bool {
	for i := range x.Dumps {
		if t := x.Dumps[i].thread(tid); t == nil || pools.At(t) != at {
			return false
		}
	}
	return true
}

// unmoved reports whether none of these threads got a CPU between two readings. A dump stops threads, and so gives them
// a CPU. So only pairs of readings without a dump in between count.
func (x *exam) unmoved(tids []int) bool {
	calm := 0
	for i := 1; i < len(x.Readings); i++ {
		a, b := x.Readings[i-1], x.Readings[i]
		if slices.ContainsFunc(x.Dumps, func(d Dump) bool {
			return d.At.Before(b.At) && !d.At.Add(d.Took).Before(a.At)
		}) {
			continue
		}
		before := turns(a)
		after := turns(b)
		for _, tid := range tids {
			was, ok := before[tid]
			if now, ok2 := after[tid]; !ok || !ok2 || was != now {
				return false
			}
		}
		calm++
	}
	return calm >= leastCalm && len(tids) > 0
}

// leastCalm is the least number of pairs of readings in which threads must not move.
const leastCalm = 2

// turns returns how often each thread got a CPU.
func turns(r *vitals.Reading) map[int]uint64 {
	of := make(map[int]uint64, len(r.Threads))
	for i := range r.Threads {
		if n, ok := r.Threads[i].Turns.Get(); ok {
			of[r.Threads[i].TID] = n
		}
	}
	return of
}

// remoteOf returns the other end of the connection that a thread waits for in all dumps, or "".
func (x *exam) remoteOf(tid int) string {
	first := x.Dumps[0].Remotes[tid]
	if !first.Address.IsValid() || slices.ContainsFunc(x.Dumps, func(d Dump) bool {
		return d.Remotes[tid].Address != first.Address
	}) {
		return ""
	}
	return first.Address.String()
}

func (s *stuckPool) count(d pools.Doing) (n int) {
	for i := range s.members {
		if s.members[i].Doing == d {
			n++
		}
	}
	return n
}
