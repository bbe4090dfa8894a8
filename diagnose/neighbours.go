//go:build linux

package diagnose

import (
	"sort"
	"time"
)

// Neighbour is a process that used CPU time while it was watched.
type Neighbour struct {
	PID   int
	Name  string        // its comm, which may hold anything
	CPU   time.Duration // used while it was watched
	Share float64       // of one CPU
}

// mostWatched limits how many processes are watched.
const mostWatched = 1 << 16

// WatchNeighbours reads the CPU time of each process. The returned function lists the processes that have used CPU time
// since, the largest use first. For a process that began since, all of its time counts.
func (h Host) WatchNeighbours() (since func() ([]Neighbour, time.Duration)) {
	began, before := time.Now(), map[int]Brief{}
	for _, pid := range h.pids() {
		if b, ok := h.Brief(pid); ok && len(before) < mostWatched {
			before[pid] = b
		}
	}
	return func() (all []Neighbour, over time.Duration) {
		over = time.Since(began)
		for _, pid := range h.pids() {
			now, ok := h.Brief(pid)
			if old := before[pid]; old.Started == now.Started {
				now.CPU -= old.CPU
			}
			if ok && now.CPU > 0 {
				all = append(all, Neighbour{pid, now.Comm, now.CPU, now.CPU.Seconds() / over.Seconds()})
			}
		}
		sort.Slice(all, func(i, j int) bool {
			a, b := &all[i], &all[j]
			return a.CPU > b.CPU || a.CPU == b.CPU && a.PID < b.PID
		})
		return all, over
	}
}
