//go:build linux

package topscreen

import (
	"goprof/output/top"
	"goprof/profile"
	"goprof/profile/pools"
	"goprof/session"
)

// pools returns the pools whose executors are known from the JVM's objects, and pools of connections. For executors
// that do not count their busy threads (ForkJoinPool, event loops), the threads' stacks are used.
func (w *Watch) pools(threads []session.LiveThread) (list []top.Pool) {
	known, err := w.aside.Pools()
	if err != nil || known.Err != "" {
		return nil
	}
	of, idle := make([]profile.ThreadDump, len(threads)), map[int]bool{}
	for i := range threads {
		idle[threads[i].TID] = threads[i].Idle && !threads[i].Moving
		of[i] = profile.ThreadDump{TID: threads[i].TID, Name: threads[i].Name, Java: threads[i].Java}
	}
	for _, p := range pools.Known(of, known) {
		if len(p.Executors) == 0 {
			continue
		}
		for i := range p.Members {
			if m := &p.Members[i]; idle[m.TID] {
				m.Doing = pools.Idle
			}
		}
		one := top.Pool{Name: p.Name, Busy: p.Busy(), Count: len(p.Members)}
		if !p.Executors[0].Scheduled { // tasks of a scheduled executor wait for their time
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
