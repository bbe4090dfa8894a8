//go:build linux

package sampler

import "sync"

// muster is where new members of a group wait until its sampling thread takes them in.
type muster[M any] struct {
	mu     sync.Mutex
	coming []M
	came   chan struct{} // has a word while somebody waits
	why    error         // why the group is over; errGroupOver where it just ended
	over   bool
}

func newMuster[M any]() muster[M] { return muster[M]{came: make(chan struct{}, 1)} }

// join has a member taken in soon. It returns false where the group is over.
func (m *muster[M]) join(member M) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.over {
		return false
	}
	m.coming = append(m.coming, member)
	select {
	case m.came <- struct{}{}:
	default:
	}
	return true
}

// next returns the members that wait. Where somebody joins just now, they wait on: the sampling thread waits for
// nobody.
func (m *muster[M]) next() []M {
	if !m.mu.TryLock() {
		return nil
	}
	defer m.mu.Unlock()
	coming := m.coming
	m.coming = nil
	return coming
}

// putBack has members wait on.
func (m *muster[M]) putBack(members []M) {
	if len(members) == 0 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.coming = append(m.coming, members...)
}

// hasComing tells whether somebody waits to be taken in.
func (m *muster[M]) hasComing() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.coming) > 0
}

func (m *muster[M]) whyEnded() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.why != nil {
		return m.why
	}
	return errGroupOver
}

// end turns away all members that come from now on, and returns the members that wait.
func (m *muster[M]) end(why error) []M {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.over, m.why = true, why
	waiting := m.coming
	m.coming = nil
	return waiting
}
