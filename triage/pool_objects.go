package triage

import (
	"fmt"
	"slices"
	"strings"

	"goprof/profile"
	"goprof/profile/pools"
)

// The state of a pool's objects is evidence. It is not a reason for a finding, because a healthy batch has a long
// queue, too.

// loadOf describes the use of a thread's pool in the last dump: "pool-1-thread-*: 40 of 40 busy, 1431 queued; 3 begun
// in 10 s". It returns "" if no executor is known.
func (x *exam) loadOf(tid int) string {
	last := x.lastDump()
	p := poolWith(last, tid)
	if p == nil {
		return ""
	}
	text := fmt.Sprintf("%s: %s", p.Name, p.Load())
	if queued, ok := p.Queued().Get(); ok && queued > 0 && len(x.Dumps) > 1 {
		if begun, ok := begunSince(poolWith(&x.Dumps[0], tid), p); ok {
			text += fmt.Sprintf("; %d begun in %s", begun, seconds(x.watched()))
		}
	}
	return text
}

// poolWith returns the pool of a thread in a dump, if the pool's executors are known.
func poolWith(d *Dump, tid int) *pools.Pool {
	for _, p := range pools.Known(d.Threads, d.Pools) {
		if len(p.Executors) > 0 && slices.ContainsFunc(p.Members, func(m pools.Member) bool { return m.TID == tid }) {
			return p
		}
	}
	return nil
}

// begunSince returns how many tasks the threads of a pool have begun between two dumps.
func begunSince(was, is *pools.Pool) (n int64, ok bool) {
	if was == nil || len(was.Executors) != len(is.Executors) {
		return 0, false
	}
	before, ok1 := was.Done().Get()
	after, ok2 := is.Done().Get()
	n = after + int64(is.Busy()) - before - int64(was.Busy())
	return n, ok1 && ok2 && n >= 0
}

// connections returns the pool of connections that threads of a stuck pool wait for. It returns nil if the pool is not
// known, or if there are several.
func (s *stuckPool) connections(x *exam) *profile.Connections {
	known := x.lastDump().Pools
	if s.on != pools.ForResource || known == nil || len(known.Connections) != 1 {
		return nil
	}
	for from := range s.tally(func(m *poolMember) string { return m.From }) {
		if !strings.HasPrefix(from, "com.zaxxer.hikari.") {
			return nil
		}
	}
	return &known.Connections[0]
}

// objects describes the objects of the pool in the JVM, and the connections that its threads wait for.
func (s *stuckPool) objects(x *exam) (lines []string) {
	if load := x.loadOf(s.Members[0].TID); load != "" && !s.virtual {
		lines = append(lines, load)
	}
	c := s.connections(x)
	if c == nil {
		return lines
	}
	text := fmt.Sprintf("%s: %s", c.Name, pools.ConnectionsLoad(c))
	if n := x.keptAll(c); n > 0 {
		text += fmt.Sprintf("; %d did not come back in %s", n, seconds(x.watched()))
	}
	lines = append(lines, text)
	users := x.usersOf(c)
	does := pools.Does(users)
	for _, text := range does[:min(3, len(does))] {
		lines = append(lines, "threads that have one of its connections: "+text)
	}
	if others := len(c.Lent) - len(users); others > 0 {
		lines = append(lines, fmt.Sprintf("lent to threads that are not known: %d", others))
	}
	return lines
}

// usersOf returns the threads that have a connection of c.
func (x *exam) usersOf(c *profile.Connections) []pools.Member {
	last := x.lastDump()
	users := append(pools.Users(last.Threads, c, true), pools.Users(last.Virtual, c, true)...)
	for i := range users {
		users[i].ThreadDump = withPeer(users[i].ThreadDump, last.Remotes)
	}
	return users
}

// usersText says where the threads with the connections are: `Of the connections 9 are with threads in a.B.c, 1 is with
// "d" tid=7 which waits for 10.0.0.7:5432 in e.F.g.` It returns "" if no such thread is known.
func (s *stuckPool) usersText(x *exam) string {
	c := s.connections(x)
	if c == nil {
		return ""
	}
	counts, one := map[string]int{}, map[string]profile.ThreadRef{}
	for _, u := range x.usersOf(c) {
		at := "in " + topJava(&u.Stack)
		if u.Peer != "" {
			at = fmt.Sprintf("that wait for %s %s", u.Peer, at)
		}
		counts[at]++
		one[at] = u.Ref()
	}
	var texts []string
	for _, at := range profile.ByCount(counts)[:min(3, len(counts))] {
		text := fmt.Sprintf("%d are with threads %s", counts[at], at)
		if counts[at] == 1 {
			text = fmt.Sprintf("1 is with %s %s", one[at], strings.Replace(at, "that wait", "which waits", 1))
		}
		texts = append(texts, text)
	}
	if len(texts) == 0 {
		return ""
	}
	return "Of the connections " + strings.Join(texts, ", ") + "."
}

// keptAll returns how many connections were in use in all dumps and were not returned in between. HikariCP notes when a
// connection was last returned.
func (x *exam) keptAll(c *profile.Connections) (n int) {
	for _, at := range c.Lent {
		kept := at != 0
		for i := range x.Dumps {
			p := x.Dumps[i].Pools
			kept = kept && p != nil && slices.ContainsFunc(p.Connections, func(o profile.Connections) bool {
				return o.Name == c.Name && slices.Contains(o.Lent, at)
			})
		}
		if kept {
			n++
		}
	}
	return n
}

// withPeer adds the other end of the connection that a thread waits for.
func withPeer(t *profile.ThreadDump, remotes map[int]Remote) *profile.ThreadDump {
	r, ok := remotes[t.TID]
	if !ok || !r.Address.IsValid() {
		return t
	}
	with := *t
	with.Peer = r.Address.String()
	return &with
}
