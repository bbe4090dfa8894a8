// Package contention finds out who waits for whom in a dump: which threads are deadlocked, and which thread each chain
// of waiting threads ends at.
//
// Its only input is the threads of one dump with their locks. A thread that waits for a lock with a known owner waits
// for that owner. Each thread waits for at most one other thread. So the threads make trees, whose roots wait for no
// thread, and cycles, with trees that lead into them.
package contention

import (
	"cmp"
	"slices"
	"sort"

	"goprof/profile"
)

// Graph says which thread waits for which. A thread is its index in the dump.
type Graph struct {
	// Deadlocks are cycles of threads each of which waits for ever for the next, the last one for the first. The first
	// has the lowest index. The cycles with most threads come first. One thread alone may be a deadlock.
	Deadlocks [][]int
	// Chains are trees of threads. Each thread waits for what the one above it holds. The trees with most threads come
	// first.
	Chains []*Node
}

// Node is a thread, and the threads that wait for it.
type Node struct {
	Thread int
	Behind int // how many threads wait for it, directly or not
	// Deadlock is the cycle that it is in, by its index, -1 for none.
	Deadlock int
	Waiting  []*Node // the one with most threads behind it first
}

// none says that a thread waits for no thread.
const none = -1

// New finds deadlocks and chains.
func New(threads []profile.ThreadDump) *Graph {
	owners := Owners(threads)
	g := &Graph{}
	inCycle := g.cycles(owners, threads)
	g.chains(owners, inCycle)
	return g
}

// Owners returns for each thread the index of the thread that it waits for, -1 if it waits for no known thread. A
// thread that blocks itself waits for itself.
func Owners(threads []profile.ThreadDump) []int {
	byTID, byVirtual := map[int]int{}, map[uint64]int{}
	for i := range threads {
		t := &threads[i]
		if t.TID != 0 {
			byTID[t.TID] = i
		}
		if v := virtual(t); v != 0 {
			byVirtual[v] = i
		}
	}
	owners := make([]int, len(threads))
	for i := range threads {
		owners[i] = none
		w := threads[i].WaitsFor
		if w == nil {
			continue
		}
		at, ok := none, false
		switch o := w.Owner; {
		case o.Virtual != 0:
			at, ok = byVirtual[o.Virtual]
		case o.TID != 0:
			at, ok = byTID[o.TID]
		}
		if ok && (at != i || blocksItself(w)) {
			owners[i] = at
		}
	}
	return owners
}

// blocksItself reports whether a thread waits for ever for a lock that it holds itself: it wants to write what it reads
// (ReentrantReadWriteLock cannot be upgraded). With other locks, another thread may release them.
func blocksItself(w *profile.WantedLock) bool { return w.Kind == profile.Shared && w.Alone }

// virtual is the number of the virtual thread that was looked at, or that the thread ran.
func virtual(t *profile.ThreadDump) uint64 {
	if t.Virtual != nil {
		return t.Virtual.ID
	}
	return t.Stack.Virtual.ID
}

// cycles finds the cycles, and says for each thread in which cycle it is. A cycle in which a thread may stop waiting by
// itself does not count.
func (g *Graph) cycles(owners []int, threads []profile.ThreadDump) []int {
	in := make([]int, len(owners))
	seen := make([]int, len(owners)) // in which walk; 0: in none yet
	for i := range in {
		in[i] = none
	}
	for start := range owners {
		at := start
		for at != none && seen[at] == 0 {
			seen[at] = start + 1
			at = owners[at]
		}
		if at == none || seen[at] != start+1 {
			continue // the walk ends, or has come to where an earlier walk was
		}
		g.cycle(at, owners, threads)
	}
	sort.Slice(g.Deadlocks, func(i, j int) bool {
		a, b := g.Deadlocks[i], g.Deadlocks[j]
		return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a[0], b[0])) < 0
	})
	for n, cycle := range g.Deadlocks {
		for _, i := range cycle {
			in[i] = n
		}
	}
	return in
}

func (g *Graph) cycle(at int, owners []int, threads []profile.ThreadDump) {
	cycle := []int{at}
	for i := owners[at]; i != at; i = owners[i] {
		cycle = append(cycle, i)
	}
	if slices.ContainsFunc(cycle, func(i int) bool { return !endless(i, threads) }) {
		return
	}
	first := slices.Index(cycle, slices.Min(cycle))
	g.Deadlocks = append(g.Deadlocks, append(slices.Clone(cycle[first:]), cycle[:first]...))
}

// chains makes the trees. Each thread of a deadlock is a root. A cycle is no deadlock if one of its threads waits only
// for some time. That thread is a root.
func (g *Graph) chains(owners []int, inCycle []int) {
	nodes := make([]*Node, len(owners))
	for i := range nodes {
		nodes[i] = &Node{Thread: i, Deadlock: inCycle[i]}
	}
	isRoot := g.roots(owners, inCycle)
	order := make([]int, 0, len(owners)) // each thread stands behind the one that it waits for
	for i := range owners {
		if isRoot[i] {
			order = append(order, i)
		}
	}
	behind := make([][]int, len(owners))
	for i, owner := range owners {
		if !isRoot[i] && owner != none {
			behind[owner] = append(behind[owner], i)
		}
	}
	for at := 0; at < len(order); at++ {
		order = append(order, behind[order[at]]...)
	}
	for _, i := range slices.Backward(order) {
		n := nodes[i]
		slices.SortStableFunc(n.Waiting, byBehind)
		if !isRoot[i] {
			up := nodes[owners[i]]
			up.Behind += n.Behind + 1
			up.Waiting = append(up.Waiting, n)
		} else if len(n.Waiting) > 0 {
			g.Chains = append(g.Chains, n)
		}
	}
	slices.SortStableFunc(g.Chains, byBehind)
}

func byBehind(a, b *Node) int {
	return cmp.Or(cmp.Compare(b.Behind, a.Behind), cmp.Compare(a.Thread, b.Thread))
}

func (g *Graph) roots(owners []int, inCycle []int) []bool {
	root := make([]bool, len(owners))
	seen := make([]int, len(owners))
	for start := range owners {
		root[start] = root[start] || owners[start] == none || inCycle[start] != none
		at := start
		for owners[at] != none && inCycle[at] == none && seen[at] == 0 {
			seen[at] = start + 1
			at = owners[at]
		}
		if owners[at] != none && inCycle[at] == none && seen[at] == start+1 {
			root[at] = true // a cycle that is no deadlock is cut somewhere
		}
	}
	return root
}
