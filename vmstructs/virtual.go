package vmstructs

import (
	"errors"
	"fmt"
	"strings"

	"goprof/process"
)

// VirtualThread is a virtual thread that no carrier runs.
type VirtualThread struct {
	ID    uint64
	Name  string
	State string // parked, timed-waiting, ...
	// Stack holds all its frames. It is valid during the visit only.
	Stack *process.Continuation
	// Mounted: a carrier ran it when it was read, so not all its frames are in the heap.
	Mounted bool
	// For is the class, with slashes, of what the thread is parked for; only a Lots that is asked says.
	For string
	// Err says why its frames could not be read.
	Err error

	object uint64 // where it is; valid during the visit only
}

// Census says how many virtual threads there are.
type Census struct {
	Seen int // how many were visited; threads that have ended do not count
	// Failed counts the places that could not be read and may lead to further threads, by the error.
	Failed map[string]int
	// Untracked: the JVM keeps no list of threads that are started without an executor
	// (-Djdk.trackAllThreads=false).
	Untracked bool
}

func (s *Census) fail(err error) {
	if s.Failed == nil {
		s.Failed = map[string]int{}
	}
	why := strings.TrimPrefix(err.Error(), "vmstructs: ") // users see it
	if _, known := s.Failed[why]; !known && len(s.Failed) >= maxReasons {
		why = "other reasons"
	}
	s.Failed[why]++
}

// incomplete returns an error with the most frequent reason for which threads may be missing, nil if there is none.
func (s *Census) incomplete() error {
	most, why := 0, ""
	for reason, n := range s.Failed {
		if n > most || n == most && reason < why {
			most, why = n, reason
		}
	}
	if most == 0 {
		return nil
	}
	return errors.New(why)
}

// maxReasons bounds how many different reasons Failed has: some have an address in them.
const maxReasons = 64

// virtualTries is how often reading is tried where a virtual thread changes meanwhile.
const virtualTries = 3

// EachVirtual visits every virtual thread that the JVM's thread containers know. No thread is stopped for that, so each
// virtual thread is shown as it was at another moment.
func (c *Continuations) EachVirtual(platform []Thread, visit func(*VirtualThread)) (Census, error) {
	if err := c.prepare(); err != nil {
		return Census{}, err
	}
	s := search{c: c, visit: visit, seen: map[uint64]bool{}, shown: map[uint64]bool{}}
	if err := s.run(platform); err != nil {
		return s.census, err
	}
	return s.census, nil
}

// look reads one virtual thread and visits it. It reports whether the thread has not been seen before and has not
// ended.
func (s *search) look(obj uint64) bool {
	c := s.c
	var t VirtualThread
	for range virtualTries {
		t = s.lookOnce(obj)
		if t.Err == nil {
			break
		}
	}
	if t.State == virtualTerminated || s.shown[t.ID] {
		return false
	}
	if t.ID != 0 { // it could be read
		s.shown[t.ID] = true
	}
	s.census.Seen++
	t.Stack = &c.heap
	s.visit(&t)
	return true
}

// lookOnce reads a virtual thread. A collector may have moved it meanwhile.
func (s *search) lookOnce(obj uint64) (t VirtualThread) {
	c := s.c
	c.heap.Reset()
	v, err := c.readVirtual(obj)
	if err != nil {
		t.Err = err
		return t
	}
	t.ID = v.ID
	state, err := s.stateOf(v.state)
	if err != nil {
		t.Err = err // perhaps a carrier runs it: then not all its frames are in the heap
		return t
	}
	t.State, t.Mounted, t.object = state.name, state.mounted, obj
	if s.light {
		return t
	}
	if !s.nameless {
		if t.Name, err = c.readName(v); err != nil {
			t.Err = err
			return t
		}
	}
	if t.State == "new" || t.State == "started" || t.State == virtualTerminated || t.Mounted {
		return t
	}
	if t.Err = c.readChunks(v.cont, &c.heap); t.Err != nil {
		return t
	}
	if !c.sameFrames() {
		t.Err = ErrChanged
		return t
	}
	if now, err := c.readVirtual(obj); err != nil || now.state != v.state || now.ID != v.ID || now.cont != v.cont {
		t.Err = ErrChanged
	} else if len(c.heap.Chunks) == 0 {
		t.Err = fmt.Errorf("%w: it has no frames", ErrChunk)
	}
	c.heap.Settled = t.Err == nil
	return t
}
