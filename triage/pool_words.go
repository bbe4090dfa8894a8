package triage

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"goprof/profile"
	"goprof/profile/pools"
)

// waitWords describe the wait of a stuck pool, and what is known if none of its threads moves.
var waitWords = map[pools.Doing]struct{ wait, still, next string }{
	pools.ForResource: {"wait for %s to hand something out", "nothing came back to it in that time",
		"who keeps what it hands out, and for how long; its size"},
	pools.ForRoom: {"wait to put something into a full queue", "nothing was taken out of it in that time",
		"what became of the threads that take from the queue"},
	pools.ForPermit: {"wait for a permit of a Semaphore", "no permit was given back in that time",
		"who took the permits, and whether each is given back"},
	pools.ForResult: {"wait for the result of other tasks", "no other thread of the program was at work in that time",
		"who is to do those tasks: if it is this same pool, no thread of it is left for them"},
	pools.ForProcess: {"wait for child processes to end", "those used no CPU in that time",
		"what the child processes wait for"},
	pools.ForName: {"wait for a host's address (DNS)", "no answer came in that time",
		"getent hosts NAME, and the name servers in /etc/resolv.conf as the JVM sees it"},
	pools.ForLock: {"wait for a lock", "it was not given back in that time", "goprof locks"},
	pools.ForPeer: {"wait for an answer from %s", "none came in that time", "the other end; timeouts"},
}

func (s *stuckPool) claim(x *exam) string {
	w := waitWords[s.on]
	wait := w.wait
	switch s.on {
	case pools.ForResource:
		if c := s.connections(x); c != nil {
			wait = fmt.Sprintf("wait for a connection of %s (%d of %d are out)", c.Name, len(c.Lent),
				max(c.All, c.Most.Or(0)))
			break
		}
		wait = fmt.Sprintf(wait, cmp.Or(profile.ByCount(s.tally(func(m *poolMember) string { return m.From }))[0], "a pool"))
	case pools.ForPeer:
		wait = fmt.Sprintf(wait, s.peer)
	case pools.ForLock:
		wait += s.heldBy(x.lastDump())
	}
	text := fmt.Sprintf("%d of %d %s %s", s.stuck, len(s.Members), s.who(), wait)
	switch {
	case s.still:
		text += fmt.Sprintf(", for at least %s: %s.", seconds(x.watched()), w.still)
	case s.slow > 0:
		text += fmt.Sprintf("; %d of them stood in the same frames %s before.", s.slow, seconds(s.slowFor))
	default:
		text += ", for most of the time."
	}
	if has := s.usersText(x); has != "" {
		text += " " + has
	}
	return text
}

// heldBy names the thread that holds the lock that virtual threads of the pool wait for, if it is one thread.
func (s *stuckPool) heldBy(d *Dump) string {
	waits := map[uint64]bool{}
	for i := range s.Members {
		if m := &s.Members[i]; m.Doing == s.on && m.Virtual != nil {
			waits[m.Virtual.ID] = true
		}
	}
	var holder profile.ThreadRef
	known := 0
	for i := range d.Threads {
		t := &d.Threads[i]
		if t.Virtual == nil || !waits[t.Virtual.ID] || t.WaitsFor == nil || !t.WaitsFor.OfAnother() {
			continue
		}
		if known > 0 && holder != t.WaitsFor.Owner {
			return ""
		}
		holder, known = t.WaitsFor.Owner, known+1
	}
	if float64(known) < dryShare*float64(len(waits)) {
		return "" // the locks of too few of them are known
	}
	return d.heldBy(holder)
}

// who returns the name of the pool for use in a sentence.
func (s *stuckPool) who() string {
	switch {
	case s.virtual && s.Name == pools.Unnamed:
		return "virtual threads"
	case s.virtual:
		return "virtual threads " + s.Name
	}
	return "threads " + s.Name
}

// watched returns the time between the first dump and the last.
func (x *exam) watched() time.Duration { return x.lastDump().At.Sub(x.Dumps[0].At) }

// tally counts the members that wait for what the pool is stuck on.
func (s *stuckPool) tally(by func(*poolMember) string) map[string]int {
	counts := map[string]int{}
	for i := range s.members {
		if m := &s.members[i]; m.Doing == s.on {
			counts[by(m)]++
		}
	}
	return counts
}

func (s *stuckPool) suspicion(x *exam) *suspicion {
	found := &suspicion{sure: 0.92, severity: profile.Warning, claim: s.claim(x),
		next: fmt.Sprintf("goprof dump --pid %d --group  (%s)", x.PID, waitWords[s.on].next)}
	if s.still && s.stuck == len(s.Members) {
		found.severity = profile.Critical
	}
	if s.on == pools.ForLock {
		found.next = fmt.Sprintf("goprof locks --pid %d  (who holds it, and who waits)", x.PID)
	}
	found.evidence = s.objects(x)
	sites := s.tally(func(m *poolMember) string { return m.Site })
	for _, site := range profile.ByCount(sites)[:min(3, len(sites))] {
		found.evidence = append(found.evidence, fmt.Sprintf("%d in %s", sites[site], site))
	}
	found.evidence = append(found.evidence, s.others()...)
	if s.on == pools.ForProcess {
		found.evidence = append(found.evidence, x.childrenText())
	}
	return found
}

// others describes the rest of the pool, which may hold what the stuck threads wait for.
func (s *stuckPool) others() (lines []string) {
	counts := map[string]int{}
	for i := range s.members {
		m := &s.members[i]
		if m.Doing == s.on {
			continue
		}
		what := m.Doing.String()
		switch {
		case m.remote != "":
			what = "waits for " + m.remote
		}
		counts[what+" in "+m.Site]++
	}
	for _, text := range profile.ByCount(counts)[:min(4, len(counts))] {
		lines = append(lines, fmt.Sprintf("%d of the same pool: %s", counts[text], text))
	}
	if len(counts) == 0 && s.on == pools.ForResource {
		lines = append(lines, "no thread of the same pool uses what it waits for: it was lent to others, or never given back")
	}
	return lines
}

// childrenText names the child processes.
func (x *exam) childrenText() string {
	names := map[string]int{}
	for _, c := range x.Children {
		names[c.Name]++
	}
	var list []string
	for _, name := range profile.ByCount(names) {
		list = append(list, fmt.Sprintf("%d %s", names[name], name))
	}
	slices.Sort(list)
	return "child processes: " + cmp.Or(few(list, 5), "none is there any more")
}
