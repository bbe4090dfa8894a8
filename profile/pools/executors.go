package pools

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"goprof/process/maybe"
	"goprof/profile"
	"goprof/profile/naming"
)

// leastNamed is how many threads without a known executor, with one name, make a pool.
const leastNamed = 3

// Known makes the pools of the program's own threads, the largest first. The threads of one executor are one pool,
// whatever their names are. Three kinds are grouped by name: executors of one thread each, executors of HTTP clients,
// and threads without a known executor.
func Known(threads []profile.ThreadDump, known *profile.Pools) []*Pool {
	if known == nil {
		known = &profile.Pools{}
	}
	of := map[int]*profile.Executor{}
	for i := range known.Executors {
		for _, tid := range known.Executors[i].Threads {
			of[tid] = &known.Executors[i]
		}
	}
	asked := func(t *profile.ThreadDump) bool { return t.TID != 0 && t.Java && !t.System }
	all := grouped(threads, asked, func(t *profile.ThreadDump) string {
		name := nameOf(t)
		if e := of[t.TID]; e != nil && !alone(e) && !strings.HasPrefix(name, naming.HTTPWorkers) {
			return fmt.Sprintf("%p", e)
		}
		return "of name " + name
	})
	list := all[:0]
	for _, p := range all {
		seen := map[*profile.Executor]bool{}
		for i := range p.Members {
			if e := of[p.Members[i].TID]; e != nil && !seen[e] {
				seen[e] = true
				p.Executors = append(p.Executors, e)
			}
		}
		if len(p.Executors) > 0 || len(p.Members) >= leastNamed {
			list = append(list, p)
		}
	}
	return list
}

// alone reports whether an executor never has more than one thread.
func alone(e *profile.Executor) bool { return e.Most.Or(0) == 1 }

// Running returns how many members are inside a task, if all executors know that.
func (p *Pool) Running() maybe.Value[int64] {
	n, ok := p.sum(func(e *profile.Executor) maybe.Value[int64] { return e.Running }).Get()
	return maybe.If(min(n, int64(len(p.Members))), ok)
}

// Busy returns Running. If Running is not known, the stacks show which threads wait for work.
func (p *Pool) Busy() int {
	return int(p.Running().Or(int64(len(p.Members) - p.Count(Idle))))
}

// Queued returns how many tasks wait for a thread of the pool. It has no value unless it is known for all executors.
func (p *Pool) Queued() maybe.Value[int64] {
	return p.sum(func(e *profile.Executor) maybe.Value[int64] { return e.Queued })
}

// Done returns how many tasks have ended.
func (p *Pool) Done() maybe.Value[int64] {
	return p.sum(func(e *profile.Executor) maybe.Value[int64] { return e.Done })
}

func (p *Pool) sum(of func(*profile.Executor) maybe.Value[int64]) maybe.Value[int64] {
	sum := int64(0)
	for _, e := range p.Executors {
		n, ok := of(e).Get()
		if !ok {
			return maybe.Value[int64]{}
		}
		sum += n
	}
	return maybe.If(sum, len(p.Executors) > 0)
}

// Load returns how much of the pool is used: "200 of 200 busy, 1431 queued".
func (p *Pool) Load() string {
	text := fmt.Sprintf("%d of %d busy", p.Busy(), len(p.Members))
	e := &profile.Executor{}
	if len(p.Executors) == 1 {
		e = p.Executors[0]
		if most, ok := e.Most.Get(); ok && int(most) > len(p.Members) && most < unlimited {
			text += fmt.Sprintf(" (it may have %d)", most)
		}
	}
	if n, ok := p.Queued().Get(); ok {
		word := " queued"
		if p.Executors[0].Scheduled {
			word = " scheduled"
		}
		text += ", " + strconv.FormatInt(n, 10) + word
	} else if len(p.Executors) > 0 {
		text += ", queue not known"
	}
	switch {
	case e.Late > time.Second:
		text += fmt.Sprintf(", the next %s overdue", e.Late.Round(time.Second))
	case e.Queued.Or(0) > 0 && e.Room == maybe.Known(int64(0)):
		text += ", which is all that it takes"
	}
	return text
}

// unlimited is Integer.MAX_VALUE, the limit of executors without a limit.
const unlimited = 1<<31 - 1

// Users returns the threads that use a connection of a pool: those that certainly hold one, and, if it is the only pool
// of HikariCP (only), those that are in a call of a HikariCP connection. The site of each is the method of the program
// that made the call.
func Users(threads []profile.ThreadDump, c *profile.Connections, only bool) (list []Member) {
	for i := range threads {
		t := &threads[i]
		names := javaOnly(t.Stack.Frames)
		outermost := -1
		for at, name := range names {
			if strings.HasPrefix(name, "com.zaxxer.hikari.pool.Proxy") ||
				strings.HasPrefix(name, "com.zaxxer.hikari.pool.HikariProxy") {
				outermost = at
			}
		}
		if held := t.TID != 0 && slices.Contains(c.Holders, t.TID); !held && (outermost < 0 || !only) {
			continue
		}
		m := Member{t, At(t)}
		if callers := program(names[outermost+1:]); len(callers) > 0 {
			m.Site = callers[0]
		}
		list = append(list, m)
	}
	return list
}

// ConnectionsLoad returns how much of a pool of connections is lent: "10 of 10 connections out, 187 threads wait".
func ConnectionsLoad(c *profile.Connections) string {
	text := fmt.Sprintf("%d of %d connections out", len(c.Lent), max(c.All, c.Most.Or(0)))
	if n, ok := c.Waiting.Get(); ok && n > 0 {
		text += fmt.Sprintf(", %d wait for one", n)
	}
	if d, ok := c.Longest.Get(); ok && d >= time.Second {
		text += fmt.Sprintf(", the first for %s", d.Round(time.Second))
	}
	return text
}

// Does lists what members do, without the idle ones, the most frequent first: "9: waits for 10.0.0.7:5432 in
// shop.Cart.pay".
func Does(members []Member) (list []string) {
	counts := map[string]int{}
	for i := range members {
		if m := &members[i]; m.Doing != Idle {
			counts[m.Text()]++
		}
	}
	for _, text := range profile.ByCount(counts) {
		list = append(list, fmt.Sprintf("%d: %s", counts[text], text))
	}
	return list
}

// Text returns what a member does: "waits for 10.0.0.7:5432 in shop.Cart.pay".
func (m *Member) Text() string {
	text := m.Doing.String()
	switch {
	case m.Peer != "" && (m.Doing == ForPeer || m.Doing == Working):
		text = "waits for " + m.Peer
	case m.From != "" && m.Doing == ForPeer:
		text = "waits for an answer in " + m.From + ", called"
	case m.From != "":
		text = "waits for " + m.From
	}
	if m.Site != "" && m.Site != m.From {
		text += " in " + m.Site
	}
	return text
}
