package contention

import (
	"math/rand/v2"
	"slices"
	"testing"

	"goprof/profile"
)

// waiting returns a dump in which thread i waits for owners[i].
func waiting(owners []int, timed func(int) bool) []profile.ThreadDump {
	threads := make([]profile.ThreadDump, len(owners))
	for i, o := range owners {
		threads[i].TID = 100 + i
		if o < 0 {
			continue
		}
		w := &profile.WantedLock{How: profile.ToEnter, Owner: profile.ThreadRef{TID: 100 + o}, Timed: timed(i)}
		w.ID = uint64(1000 + i)
		threads[i].WaitsFor = w
	}
	return threads
}

func never(int) bool { return false }

func TestDeadlockOfTwo(t *testing.T) {
	g := New(waiting([]int{1, 0, 1, 2, -1}, never))
	if len(g.Deadlocks) != 1 || !slices.Equal(g.Deadlocks[0], []int{0, 1}) {
		t.Errorf("deadlocks %v", g.Deadlocks)
	}
	if len(g.Chains) != 1 || g.Chains[0].Thread != 1 || g.Chains[0].Behind != 2 || g.Chains[0].Deadlock != 0 {
		t.Errorf("chains %+v", g.Chains[0])
	}
	if deep := g.Chains[0].Waiting[0]; deep.Thread != 2 || deep.Behind != 1 || deep.Waiting[0].Thread != 3 {
		t.Errorf("below the root: %+v", deep)
	}
}

func TestTimedWaitIsNoDeadlock(t *testing.T) {
	g := New(waiting([]int{1, 2, 0}, func(i int) bool { return i == 1 }))
	if len(g.Deadlocks) != 0 {
		t.Errorf("deadlocks %v, of threads that do not wait for ever", g.Deadlocks)
	}
	if len(g.Chains) != 1 || g.Chains[0].Behind != 2 {
		t.Errorf("%d chains", len(g.Chains))
	}
}

func TestVirtualOwners(t *testing.T) {
	threads := []profile.ThreadDump{
		{TID: 7, Stack: profile.Stack{Mounted: true, Virtual: profile.VirtualThread{ID: 30}},
			WaitsFor: &profile.WantedLock{Owner: profile.ThreadRef{Virtual: 31}}},
		{Virtual: &profile.VirtualThread{ID: 31},
			WaitsFor: &profile.WantedLock{Owner: profile.ThreadRef{TID: 7, Virtual: 30}}},
		// This thread is not in the dump.
		{TID: 8, WaitsFor: &profile.WantedLock{Owner: profile.ThreadRef{Virtual: 99}}},
	}
	g := New(threads)
	if len(g.Deadlocks) != 1 || !slices.Equal(g.Deadlocks[0], []int{0, 1}) || len(g.Chains) != 0 {
		t.Errorf("deadlocks %v, %d chains", g.Deadlocks, len(g.Chains))
	}
}

// TestAgainstBruteForce uses random graphs. A thread is in a deadlock exactly if the owners lead back to it, without a
// wait that ends by itself. Behind a root are exactly the threads whose waits lead to it.
func TestAgainstBruteForce(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 20000 {
		n := 1 + r.IntN(20)
		owners, timed := make([]int, n), make([]bool, n)
		for i := range owners {
			if owners[i] = r.IntN(n+n/2+1) - n/2 - 1; owners[i] < 0 || owners[i] == i {
				owners[i] = none
			}
			timed[i] = r.IntN(6) == 0
		}
		check(t, owners, timed)
		if t.Failed() {
			t.Fatalf("owners %v, timed %v", owners, timed)
		}
	}
}

func check(t *testing.T, owners []int, timed []bool) {
	g := New(waiting(owners, func(i int) bool { return timed[i] }))
	in := map[int]bool{}
	for n, cycle := range g.Deadlocks {
		for k, i := range cycle {
			if in[i] || owners[i] != cycle[(k+1)%len(cycle)] {
				t.Errorf("deadlock %d: %v is no cycle of its own", n, cycle)
			}
			in[i] = true
		}
	}
	for i := range owners {
		if in[i] != bruteDeadlocked(owners, timed, i) {
			t.Errorf("thread %d: deadlocked %v", i, in[i])
		}
	}
	count := map[int]int{}
	for _, root := range g.Chains {
		if root.Behind == 0 || owners[root.Thread] != none && !in[root.Thread] && !bruteCycle(owners, root.Thread) {
			t.Errorf("%d is no root", root.Thread)
		}
		if got := countTree(t, root, owners, count); got-1 != root.Behind {
			t.Errorf("%d behind thread %d, told are %d", got-1, root.Thread, root.Behind)
		}
	}
	for i, owner := range owners {
		want := owner != none && !in[i]
		isRoot := slices.ContainsFunc(g.Chains, func(n *Node) bool { return n.Thread == i })
		if count[i] > 1 || want && count[i] != 1 || !want && count[i] == 1 && !isRoot {
			t.Errorf("thread %d is %d times in the chains", i, count[i])
		}
	}
}

func countTree(t *testing.T, n *Node, owners []int, count map[int]int) int {
	all := 1
	count[n.Thread]++
	for _, below := range n.Waiting {
		if owners[below.Thread] != n.Thread {
			t.Errorf("%d does not wait for %d", below.Thread, n.Thread)
		}
		all += countTree(t, below, owners, count)
	}
	return all
}

// bruteCycle follows the owners from i for as many steps as there are threads.
func bruteCycle(owners []int, i int) bool {
	at := i
	for range owners {
		if at = owners[at]; at == none {
			return false
		}
		if at == i {
			return true
		}
	}
	return false
}

func bruteDeadlocked(owners []int, timed []bool, i int) bool {
	if !bruteCycle(owners, i) || timed[i] {
		return false
	}
	for at := owners[i]; at != i; at = owners[at] {
		if timed[at] {
			return false
		}
	}
	return true
}
