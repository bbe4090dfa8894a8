// Package contention finds out which threads wait for which others in a dump: which threads are deadlocked, and which
// thread is at the end of each chain of waiting threads.
//
// Its only input is the threads of one dump with their locks. A thread that waits for a lock with a known owner waits
// for that owner. Each thread waits for at most one other thread. So the threads form trees, whose roots wait for no
// thread, and cycles, with trees that lead into them.
package contention

import (
	"cmp"
	"slices"
	"sort"

	"goprof/profile"
)

// Graph shows which thread waits for which. A thread is its index in the dump.
type Graph struct {
	// Deadlocks are cycles of threads. Each thread waits forever for the next one, and the last one for the first, which
	// has the lowest index. The cycles with the most threads come first. One thread alone may be a deadlock.
	Deadlocks [][]int
	// Chains are trees of threads. Each thread waits for something that its parent holds. The trees with the most threads
	// come first.
	Chains []*Node
}

// Node is a thread, and the threads that wait for it.
type Node struct {
	Thread int
	Behind int // number of threads that wait for it, directly or not
	// Deadlock is the index of the thread's cycle, or -1.
	Deadlock int
	Waiting  []*Node // the one with the most threads behind it first
}

// none: a thread waits for no thread.
const none = -1

// New finds deadlocks and chains.
func New(threads []profile.ThreadDump) *Graph {
	owners := Owners(threads)
	g := &Graph{}
	inCycle := g.cycles(owners, threads)
	g.chains(owners, inCycle)
	return g
}

// Owners returns for each thread the index of the thread that it waits for. It is -1 if the thread waits for no known
// thread. A thread that blocks itself waits for itself.
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

// blocksItself reports whether a thread waits forever for a lock that it holds itself: it holds the read lock and wants
// the write lock (ReentrantReadWriteLock cannot be upgraded). Other locks may be released by other threads.
func blocksItself(w *profile.WantedLock) bool { return w.Kind == profile.Shared && w.Alone }

// virtual returns the number of the virtual thread itself, or of the one that the thread ran.
func virtual(t *profile.ThreadDump) uint64 {
	if t.Virtual != nil {
		return t.Virtual.ID
	}
	return t.Stack.Virtual.ID
}

// cycles finds the cycles, and returns for each thread its cycle. A cycle does not count if one of its threads may stop
// waiting by itself.
func (g *Graph) cycles(owners []int, threads []profile.ThreadDump) []int {
	in := make([]int, len(owners))
	seen := make([]int, len(owners)) // number of the walk that has seen it; 0: none yet
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
			continue // the walk ends, or has reached an earlier walk
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

// chains makes the trees. Each thread of a deadlock is a root. A cycle in which a thread only waits for some time is
// not a deadlock. That thread is a root.
func (g *Graph) chains(owners []int, inCycle []int) {
	nodes := make([]*Node, len(owners))
	for i := range nodes {
		nodes[i] = &Node{Thread: i, Deadlock: inCycle[i]}
	}
	isRoot := g.roots(owners, inCycle)
	order := make([]int, 0, len(owners)) // each thread comes after the one that it waits for
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
			root[at] = true // a cycle that is not a deadlock is cut somewhere
		}
	}
	return root
}
