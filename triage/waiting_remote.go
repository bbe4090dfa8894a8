package triage

import (
	"fmt"
	"slices"

	"goprof/profile"
	"goprof/profile/naming"
)

// A thread that waits for an answer waits for a connection that the program itself has opened. (A thread that waits
// for a client's next request has nothing to do.) The finding is that all threads of a pool wait for answers: then no
// thread is left for the next request.
const (
	// poolOf is how many threads are a pool, at least. Fewer may be there only to wait: a consumer of messages, a
	// listener for changes.
	poolOf = 3
	// poolShare of a pool's threads must wait for one address, in all dumps and for remoteShare of their time.
	poolShare   = 0.9
	remoteShare = 0.7
)

func waitingRemote(x *exam) *suspicion {
	if x.Wall == nil || len(x.Dumps) < 2 || x.Dumps[0].Remotes == nil {
		return x.cannotTell("which connections its threads wait for could not be read")
	}
	for _, pool := range x.poolsByRemote() {
		if s := pool.suspicion(x); s != nil {
			return s
		}
	}
	return nil
}

// remotePool is a pool of threads, and the remotes that they wait for.
type remotePool struct {
	name    string
	threads int
	first   int            // one of them
	stuck   map[string]int // by address
	share   float64        // of their time, the sum over those stuck
	state   string
	where   map[string]int
}

func (p *remotePool) suspicion(x *exam) *suspicion {
	addresses := ranked(p.stuck)
	if len(addresses) == 0 {
		return nil
	}
	n := p.stuck[addresses[0]]
	if n < poolOf || float64(n) < poolShare*float64(p.threads) {
		return nil
	}
	share := p.share / float64(n)
	s := &suspicion{sure: scaled(share, remoteShare, 0.8, 0.9), severity: profile.Warning,
		claim: fmt.Sprintf("%d of %d threads %s wait for %s, for %s of their time.", n, p.threads, p.name, addresses[0],
			percent(share)),
		evidence: []string{fmt.Sprintf("in all of %d dumps they waited for a connection to %s that the process opened (%s)",
			len(x.Dumps), addresses[0], p.state)},
		next: fmt.Sprintf("look at %s; goprof record --pid %d --mode wall -d 30s  (which calls wait for it)",
			addresses[0], x.PID)}
	if load := x.loadOf(p.first); load != "" {
		s.evidence = append(s.evidence, load)
	}
	if sites := ranked(p.where); len(sites) > 0 && sites[0] != "" {
		s.evidence = append(s.evidence, "most wait in "+sites[0])
	}
	return s
}

// poolsByRemote returns the pools of threads of the last dump, the largest first.
func (x *exam) poolsByRemote() []*remotePool {
	pools := map[string]*remotePool{}
	sizes := map[string]int{}
	last := x.lastDump()
	for i := range last.Threads {
		t := &last.Threads[i]
		if t.TID == 0 || !x.isApp(t.TID) {
			continue
		}
		name := naming.Pool(t.Name)
		p := pools[name]
		if p == nil {
			p = &remotePool{name: name, first: t.TID, stuck: map[string]int{}, where: map[string]int{}}
			pools[name] = p
		}
		p.threads++
		sizes[name]++
		p.add(x, t)
	}
	var list []*remotePool
	for _, name := range ranked(sizes) {
		list = append(list, pools[name])
	}
	return list
}

// add counts a thread that waited for the same address in all dumps and nearly all of the time.
func (p *remotePool) add(x *exam, t *profile.ThreadDump) {
	w := x.waits[t.TID]
	remote, ok := x.Dumps[0].Remotes[t.TID]
	if !ok || w == nil || w.total < leastLooks || w.share(profile.Socket) < remoteShare {
		return
	}
	if slices.ContainsFunc(x.Dumps[1:], func(d Dump) bool { return d.Remotes[t.TID].Address != remote.Address }) {
		return
	}
	p.stuck[remote.Address.String()]++
	p.share += w.share(profile.Socket)
	p.state = remote.State
	p.where[topJava(&t.Stack)]++
}
