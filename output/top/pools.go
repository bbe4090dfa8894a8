package top

import (
	"cmp"
	"fmt"
	"sort"
	"strings"
)

// Pool is a pool of threads, or of connections.
type Pool struct {
	Name        string
	Busy, Count int    // of its threads; for connections, Busy is the lent ones
	Queued      *int64 // tasks in its queue; for connections, threads that wait for one; nil: not known
	Connections bool
}

// load returns how much of the pool is used: "http-*: 200 of 200 busy, 31 wait".
func (p *Pool) load() string {
	word, wait := "busy", ""
	if p.Connections {
		word = "lent"
	}
	if p.Queued != nil && *p.Queued > 0 {
		wait = fmt.Sprintf(", %d wait", *p.Queued)
	}
	return fmt.Sprintf("%s: %d of %d %s%s", clean(p.Name), p.Busy, p.Count, word, wait)
}

// full returns the sort key of pools: first pools that threads wait for, then the most used ones.
func (p *Pool) full() (waits int64, used float64) {
	if p.Queued != nil {
		waits = *p.Queued
	}
	return waits, float64(p.Busy) / float64(max(p.Count, 1))
}

func sortPools(list []Pool) {
	sort.SliceStable(list, func(i, j int) bool {
		a, aUsed := list[i].full()
		b, bUsed := list[j].full()
		return cmp.Or(cmp.Compare(b, a), cmp.Compare(bUsed, aUsed)) < 0
	})
}

// poolsLine returns the head's line about pools, the fullest first. It leaves out idle ones.
func poolsLine(list []Pool) string {
	sortPools(list)
	var loads []string
	for i := range list {
		if waits, used := list[i].full(); waits > 0 || used > 0 {
			loads = append(loads, list[i].load())
		}
	}
	if loads == nil {
		return "pools   idle"
	}
	return "pools   " + strings.Join(loads, "; ")
}
