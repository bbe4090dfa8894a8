//go:build linux

package main

import (
	"goprof/output/top"
	"goprof/profile"
	"goprof/profile/pools"
	"goprof/session"
)

// pools are those of which the JVM's objects say how much of them is used. Others, as event loops, need stacks.
func (w *topWatch) pools(threads []session.LiveThread) (list []top.Pool) {
	known, err := w.aside.Pools()
	if err != nil || known.Err != "" {
		return nil
	}
	of := make([]profile.ThreadDump, len(threads))
	for i := range threads {
		of[i] = profile.ThreadDump{TID: threads[i].TID, Name: threads[i].Name, Java: threads[i].Java}
	}
	for _, p := range pools.Known(of, known) {
		n, ok := p.Running().Get()
		if !ok {
			continue
		}
		one := top.Pool{Name: p.Name, Busy: int(n), Count: len(p.Members)}
		if !p.Executors[0].Scheduled { // else its tasks wait for their time
			one.Queued = p.Queued().Pointer()
		}
		list = append(list, one)
	}
	for i := range known.Connections {
		c := &known.Connections[i]
		list = append(list, top.Pool{Name: c.Name, Busy: len(c.Lent), Count: int(max(c.All, c.Most.Or(0))),
			Queued: c.Waiting.Pointer(), Connections: true})
	}
	return list
}
