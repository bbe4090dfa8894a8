package heat

import (
	"cmp"
	"fmt"
	"slices"

	"goprof/output"
	"goprof/profile"
	"goprof/profile/naming"
)

const (
	// maxLanes bounds the lanes of a page. Those with the fewest samples share the last one.
	maxLanes = 200
	// maxKnown bounds the threads that are distinguished while samples are read: a program may have millions of virtual
	// threads.
	maxKnown = 1 << 16
	noThread = "no thread known"
	virtuals = "virtual threads"
)

// lanes are the threads, or pools of threads, of the samples.
type lanes struct {
	threads bool
	recent  profile.ByThread[int32] // a cache before known
	known   map[profile.Thread]int32
	byName  map[string]int32
	names   []string
	weight  []int64
	beyond  int // number of lanes that share one on the page
}

func newLanes(threads bool) *lanes {
	return &lanes{threads: threads, known: make(map[profile.Thread]int32), byName: make(map[string]int32)}
}

func (l *lanes) of(t *profile.Thread) int32 {
	lane, ok := l.recent.Get(t)
	if !ok {
		lane = l.find(t)
		l.recent.Put(t, lane)
	}
	return lane
}

func (l *lanes) find(t *profile.Thread) int32 {
	lane, ok := l.known[*t]
	if ok {
		return lane
	}
	name := poolOf(t)
	if l.threads {
		name = nameOf(t)
	}
	if lane, ok = l.byName[name]; !ok {
		if len(l.names) >= maxKnown {
			name = "threads beyond the first 65,535"
		}
		if lane, ok = l.byName[name]; !ok {
			lane = int32(len(l.names))
			l.names, l.weight = append(l.names, name), append(l.weight, 0)
			l.byName[name] = lane
		}
	}
	if len(l.known) >= maxKnown {
		clear(l.known)
	}
	l.known[*t] = lane
	return lane
}

func poolOf(t *profile.Thread) string {
	name := cmp.Or(t.JavaName, t.Name)
	switch {
	case t.Virtual && t.JavaName == "":
		return virtuals
	case name == "":
		return noThread
	}
	return naming.Pool(output.CleanName(name))
}

func nameOf(t *profile.Thread) string {
	if *t == (profile.Thread{}) {
		return noThread
	}
	label := output.CleanName(naming.ThreadLabel(t))
	return label[1 : len(label)-1]
}

// ordered sorts the lanes by weight, the largest first. It returns the new number of each.
func (l *lanes) ordered() (now []int32) {
	order := make([]int32, len(l.names))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(a, b int32) int {
		return cmp.Or(cmp.Compare(l.weight[b], l.weight[a]), cmp.Compare(l.names[a], l.names[b]))
	})
	now = make([]int32, len(order))
	names := make([]string, 0, maxLanes)
	weight := make([]int64, 0, maxLanes)
	for i, lane := range order {
		at := min(i, maxLanes-1)
		now[lane] = int32(at)
		if i < maxLanes {
			names, weight = append(names, l.names[lane]), append(weight, 0)
		}
		weight[at] += l.weight[lane]
	}
	if len(order) > maxLanes {
		l.beyond = len(order) - maxLanes + 1
		names[maxLanes-1] = fmt.Sprintf("%d other lanes", l.beyond)
	}
	l.names, l.weight = names, weight
	return now
}
