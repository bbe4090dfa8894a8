package triage

import (
	"fmt"
	"net/netip"
	"slices"

	"goprof/profile"
	"goprof/profile/naming"
	"goprof/profile/pools"
)

// A thread that waits for an answer waits for a connection that the program itself has opened. (A thread that waits for
// a client's next request is idle.) Some client libraries have threads of their own for connections, and the program's
// thread waits for one of those. The finding is that all threads of a pool wait for answers: no thread is left for the
// next request.
const (
	// poolOf is the least number of threads in a pool. The purpose of fewer threads may be to wait: a consumer of
	// messages, a listener for changes.
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

// remotePool is a pool of threads, with the remotes that they wait for.
type remotePool struct {
	name    string
	threads int
	first   int            // one of its threads
	stuck   map[string]int // threads by address, or by the client library's method
	share   float64        // sum of the shares of their time that the threads in stuck wait
	state   string
	where   map[string]int
}

func (p *remotePool) suspicion(x *exam) *suspicion {
	addresses := profile.ByCount(p.stuck)
	if len(addresses) == 0 {
		return nil
	}
	n := p.stuck[addresses[0]]
	if n < poolOf || float64(n) < poolShare*float64(p.threads) {
		return nil
	}
	share := p.share / float64(n)
	remote, lead, look, evidence := addresses[0], "", "look at "+addresses[0], fmt.Sprintf("in all of %d dumps they "+
		"waited for a connection to %s that the process opened (%s)", len(x.Dumps), addresses[0], p.state)
	if _, err := netip.ParseAddrPort(addresses[0]); err != nil {
		remote, look = "an answer to "+addresses[0], "its log says what it cannot reach"
		lead, evidence = x.connectionsLead(n)
	}
	if sites := profile.ByCount(p.where); len(sites) > 0 && sites[0] != "" {
		remote += " in " + sites[0]
	}
	s := &suspicion{sure: scaled(share, remoteShare, 0.8, 0.9), severity: profile.Warning,
		claim: fmt.Sprintf("%d of %d threads %s wait for %s, for %s of their time.%s", n, p.threads, p.name, remote,
			percent(share), lead),
		evidence: []string{evidence},
		next:     fmt.Sprintf("%s; goprof record --pid %d --mode wall -d 30s  (which calls wait for it)", look, x.PID)}
	if load := x.loadOf(p.first); load != "" {
		s.evidence = append(s.evidence, load)
	}
	return s
}

// poolsByRemote returns the pools of threads of the last dump, the largest first.
func (x *exam) poolsByRemote() []*remotePool {
	byName := map[string]*remotePool{}
	sizes := map[string]int{}
	last := x.lastDump()
	for i := range last.Threads {
		t := &last.Threads[i]
		if t.TID == 0 || !x.isApp(t.TID) {
			continue
		}
		name := naming.Pool(t.Name)
		p := byName[name]
		if p == nil {
			p = &remotePool{name: name, first: t.TID, stuck: map[string]int{}, where: map[string]int{}}
			byName[name] = p
		}
		p.threads++
		sizes[name]++
		p.add(x, t)
	}
	var list []*remotePool
	for _, name := range profile.ByCount(sizes) {
		list = append(list, byName[name])
	}
	return list
}

// connectionsLead says where the connections lead that the process itself has opened. It returns lead, a separate
// sentence, if the number of connections to one address is close to the number of threads that wait in a client
// library. Otherwise it returns evidence. Nothing shows which connections are the library's.
func (x *exam) connectionsLead(threads int) (lead, evidence string) {
	opened := x.lastDump().Opened
	all, most := 0, netip.AddrPort{}
	for address, n := range opened {
		if all += n; n > opened[most] || n == opened[most] && address.Compare(most) < 0 {
			most = address
		}
	}
	toMost := fmt.Sprintf("%d of %d connections that the process has opened lead to %s", opened[most], all, most)
	const whose = "which connections are the library's is not known"
	switch {
	case opened == nil:
		return "", "the connections of the process could not be read"
	case all == 0:
		return " The process has no connection that it has opened.", "that was read at the end"
	case len(opened) == 1 || float64(opened[most]) >= poolShare*float64(threads):
		return " " + toMost + ".", whose
	}
	return "", toMost + "; " + whose
}

// add counts a thread that waited for the same address, or in the same call of a client library, in all dumps and
// nearly all of the time.
func (p *remotePool) add(x *exam, t *profile.ThreadDump) {
	w := x.waits[t.TID]
	if w == nil || w.total < leastLooks {
		return
	}
	if at := pools.At(t); at.Doing == pools.ForPeer && at.From != "" {
		if share := w.doing(at); share >= remoteShare && x.sameInDumps(t.TID, at) {
			p.stuck[at.From]++
			p.share += share
			p.where[at.Site]++
		}
		return
	}
	remote, ok := x.Dumps[0].Remotes[t.TID]
	if !ok || w.share(profile.Socket) < remoteShare {
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
