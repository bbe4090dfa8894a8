package vmstructs

import (
	"errors"
	"fmt"
	"strings"

	"goprof/process"
)

// VirtualThread is a virtual thread without a carrier.
type VirtualThread struct {
	ID    uint64
	Name  string
	State string                // parked, timed-waiting, ...
	Stack *process.Continuation // all its frames; only valid during the visit
	// Mounted: a carrier ran the thread when it was read, so not all its frames are in the heap.
	Mounted bool
	For     string // the class, with slashes, of the object for which it is parked; see VirtualSampler.Blockers
	Err     error  // why its frames could not be read

	object uint64 // its address; only valid during the visit
}

// Census counts virtual threads.
type Census struct {
	Seen int // visited threads; those that have ended do not count
	// Failed counts, by error, the objects that could not be read and that may lead to further threads.
	Failed map[string]int
	// Untracked: the JVM keeps no list of threads without an executor (-Djdk.trackAllThreads=false).
	Untracked bool
}

func (s *Census) fail(err error) {
	if s.Failed == nil {
		s.Failed = map[string]int{}
	}
	why := strings.TrimPrefix(err.Error(), "vmstructs: ") // the text is shown to users
	if _, known := s.Failed[why]; !known && len(s.Failed) >= maxReasons {
		why = "other reasons"
	}
	s.Failed[why]++
}

// incomplete returns an error with the most frequent reason why threads may be missing, nil if there is none.
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

// maxReasons bounds the different reasons in Failed, because some include an address.
const maxReasons = 64

// virtualTries is the number of attempts to read a virtual thread that changes.
const virtualTries = 3

// EachVirtual visits every virtual thread in the JVM's thread containers. No thread is stopped, so each virtual thread
// is shown in its state at a different moment.
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

// look reads one virtual thread and visits it. It returns false if the thread was seen before, or has ended.
func (s *search) look(obj uint64) bool {
	t := s.readThread(obj)
	if t.State == virtualTerminated || s.shown[t.ID] {
		return false
	}
	if t.ID != 0 { // it could be read
		s.shown[t.ID] = true
	}
	s.census.Seen++
	t.Stack = &s.c.heap
	s.visit(&t)
	return true
}

// readThread reads a virtual thread. It tries a few times if the thread changes or a collector moves it.
func (s *search) readThread(obj uint64) (t VirtualThread) {
	for range virtualTries {
		if t = s.lookOnce(obj); t.Err == nil {
			break
		}
	}
	return t
}

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
		t.Err = err // perhaps a carrier runs it, and some of its frames are not in the heap
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
