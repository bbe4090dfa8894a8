//go:build linux

package sampler

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// Arrivals is where new members of a group wait until its sampling thread takes them in.
type Arrivals[M any] struct {
	mu     sync.Mutex
	coming []M
	Came   chan struct{} // has a word while somebody waits
	why    error         // why the group is over; errGroupOver where it just ended
	over   bool
}

func NewArrivals[M any]() Arrivals[M] { return Arrivals[M]{Came: make(chan struct{}, 1)} }

// Join has a member taken in soon. It returns false where the group is over.
func (m *Arrivals[M]) Join(member M) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.over {
		return false
	}
	m.coming = append(m.coming, member)
	select {
	case m.Came <- struct{}{}:
	default:
	}
	return true
}

// Next returns the members that wait. Where somebody joins just now, they wait on: the sampling thread waits for
// nobody.
func (m *Arrivals[M]) Next() []M {
	if !m.mu.TryLock() {
		return nil
	}
	defer m.mu.Unlock()
	coming := m.coming
	m.coming = nil
	return coming
}

// PutBack has members wait on.
func (m *Arrivals[M]) PutBack(members []M) {
	if len(members) == 0 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.coming = append(m.coming, members...)
}

// HasComing tells whether somebody waits to be taken in.
func (m *Arrivals[M]) HasComing() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.coming) > 0
}

func (m *Arrivals[M]) WhyEnded() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.why != nil {
		return m.why
	}
	return errGroupOver
}

// End turns away all members that come from now on, and returns the members that wait.
func (m *Arrivals[M]) End(why error) []M {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.over, m.why = true, why
	waiting := m.coming
	m.coming = nil
	return waiting
}

// GroupStats is what a Group has done so far.
type GroupStats struct {
	Visits  int64         // of CPUs
	Met     int64         // threads of members
	Others  int64         // threads of other processes
	Missed  int64         // visits that were left out because their moment had passed long ago
	Members int           // that are in it now
	CPU     time.Duration // of the sampling thread and its preempters, without what stops took of others
}

// GroupCounts is what a Group has done, for any goroutine.
type GroupCounts struct {
	Visits, Met, Others, Missed, CPU, Members atomic.Int64
}

func (c *GroupCounts) Stats() GroupStats {
	return GroupStats{Visits: c.Visits.Load(), Met: c.Met.Load(), Others: c.Others.Load(),
		Missed: c.Missed.Load(), Members: int(c.Members.Load()), CPU: time.Duration(c.CPU.Load())}
}

// ErrTwice: the process is a member already.
var ErrTwice = errors.New("sampler: the process is sampled already")

// errGroupOver ends members whose Group has ended.
var errGroupOver = errors.New("sampler: the group has ended")

// RefreshBusy is how often a member's list of threads is brought up to date if the member was met, and RefreshIdle if
// it was not.
const (
	RefreshBusy = int64(time.Second)
	RefreshIdle = int64(10 * time.Second)
)
