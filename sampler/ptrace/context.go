//go:build linux

package ptrace

import (
	"sync/atomic"

	"goprof/process"
	"goprof/sampler/look"
)

// Contexts says where the threads of a process publish their contexts (look.Context). It may change while a Tracer
// looks. The zero value is a process that publishes none.
type Contexts struct{ ways atomic.Pointer[contextWays] }

// contextWays are the variables in which a context may be. There is one, unless several agents publish.
type contextWays struct {
	list   [MaxContextWays]process.Local
	n      int
	number uint64 // identifies these ways: guesses with another number are void
}

// MaxContextWays is how many libraries of a process may publish contexts.
const MaxContextWays = 4

const (
	// contextGuesses is the size of the table of guesses. It is a power of two.
	contextGuesses = 1 << 8
)

var contextNumbers atomic.Uint64

// Set sets the places of contexts. An empty list means that there are none. If the list is the same, guesses stay
// valid.
func (c *Contexts) Set(list []process.Local) {
	if len(list) == 0 {
		c.ways.Store(nil)
		return
	}
	w := &contextWays{}
	for w.n < len(list) && w.n < MaxContextWays && list[w.n].HeadLen <= process.MaxLocalHead {
		w.list[w.n] = list[w.n]
		w.n++
	}
	if before := c.ways.Load(); before != nil && before.n == w.n && before.list == w.list {
		return
	}
	w.number = contextNumbers.Add(1)
	c.ways.Store(w)
}

// Ways returns the variables in which a context may be, and a number that changes with them. 0: there are none.
func (c *Contexts) Ways() (list []process.Local, number uint64) {
	w := c.ways.Load()
	if w == nil {
		return nil, 0
	}
	return w.list[:w.n], w.number
}

// Published reports whether threads may have contexts.
func (c *Contexts) Published() bool { return c.ways.Load() != nil }

// contextCopy holds what is prepared outside the pause for finding a thread's record, and the results.
type contextCopy struct {
	guess []contextGuess // nil until there is a way
	reads int64          // system calls that read, in all: for tests
}

// contextGuess is where a thread's record was at its last look. Each look reads these addresses again and compares.
type contextGuess struct {
	tid     int
	number  uint64 // the number of the ways
	pointer uint64 // the thread pointer
	at      [MaxContextWays]struct{ table, block, record uint64 }
}

// contextReads holds the reads of one way, in the Runner's memory.
type contextReads struct {
	table, block, slot uint64
	head               [process.MaxLocalHead]byte
	record             [look.ContextSize]byte
}

// prepareContext makes room for guesses, if the process publishes contexts.
func (t *Tracer) prepareContext() {
	if t.Contexts != nil && t.context.guess == nil && t.Contexts.Published() {
		t.context.guess = make([]contextGuess, contextGuesses)
	}
}
