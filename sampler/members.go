//go:build linux

package sampler

import (
	"context"
	"errors"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"goprof/sampler/ptrace"
)

// Members are those of a group, as the groups of packages visit and perf have them in common: where new members wait
// until the sampling thread takes them in, and how often all of them are sampled.
type Members[M any] struct {
	Counts GroupCounts
	// MaxStack bounds the copy of one stack.
	MaxStack int

	interval atomic.Int64
	wake     func() // ends a long sleep of the sampling thread

	mu     sync.Mutex
	coming []M
	came   chan struct{} // has a word while a member waits
	why    error         // why the group is over; errGroupOver where it just ended
	over   bool
}

// NewMembers makes a group of no members. They are sampled once in interval. Their stacks are copied up to the size
// stack (0: ptrace.DefaultStackLimit). wake ends a long sleep of the sampling thread.
func NewMembers[M any](interval time.Duration, stack int, wake func()) *Members[M] {
	if stack <= 0 {
		stack = ptrace.DefaultStackLimit
	}
	m := &Members[M]{MaxStack: stack, wake: wake, came: make(chan struct{}, 1)}
	m.interval.Store(int64(max(interval, MinInterval)))
	return m
}

// Interval is the CPU time between two samples of a thread of a member that has its whole share.
func (m *Members[M]) Interval() time.Duration { return time.Duration(m.interval.Load()) }

// SetInterval changes the Interval soon.
func (m *Members[M]) SetInterval(d time.Duration) {
	m.interval.Store(int64(max(d, MinInterval)))
	m.wake()
}

// Stats is what the group has done so far, from any goroutine.
func (m *Members[M]) Stats() GroupStats { return m.Counts.stats() }

// Join has a member taken in soon. It returns false if the group is over.
func (m *Members[M]) Join(member M) bool {
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

// Next returns the members that wait. If a member joins just now, they wait on: the sampling thread waits for no
// lock.
func (m *Members[M]) Next() []M {
	if !m.mu.TryLock() {
		return nil
	}
	defer m.mu.Unlock()
	coming := m.coming
	m.coming = nil
	return coming
}

// PutBack has members wait on.
func (m *Members[M]) PutBack(members []M) {
	if len(members) == 0 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.coming = append(m.coming, members...)
}

// Await waits until a member waits to be taken in. It returns false when ctx is done.
func (m *Members[M]) Await(ctx context.Context) bool {
	for ctx.Err() == nil {
		if m.haveComing() {
			return true
		}
		select {
		case <-m.came:
		case <-ctx.Done():
		}
	}
	return false
}

func (m *Members[M]) haveComing() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.coming) > 0
}

// WhyEnded is why the group is over.
func (m *Members[M]) WhyEnded() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.why != nil {
		return m.why
	}
	return errGroupOver
}

// End turns away all members that come from now on, and returns the members that wait.
func (m *Members[M]) End(why error) []M {
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
	// Unsampled is how many CPUs are on and have no samples: the kernel had no room, and goprof tries again.
	Unsampled int
}

// GroupCounts is what a Group has done, for any goroutine.
type GroupCounts struct {
	Visits, Met, Others, Missed, CPU, Members, Unsampled atomic.Int64
}

func (c *GroupCounts) stats() GroupStats {
	return GroupStats{Visits: c.Visits.Load(), Met: c.Met.Load(), Others: c.Others.Load(),
		Missed: c.Missed.Load(), Members: int(c.Members.Load()), CPU: time.Duration(c.CPU.Load()),
		Unsampled: int(c.Unsampled.Load())}
}

// Portion is which part of its due samples a member has. It may be used from any goroutine.
type Portion struct {
	part atomic.Uint64 // a float64
	met  atomic.Int64
	wake func()
}

// NewPortion is the whole. wake is that of NewMembers.
func NewPortion(wake func()) *Portion {
	p := &Portion{wake: wake}
	p.part.Store(math.Float64bits(1))
	return p
}

// SetShare sets which part of the due samples is taken, drawn by lot. A sample then stands for Interval/share of CPU
// time.
func (p *Portion) SetShare(share float64) {
	p.part.Store(math.Float64bits(min(max(share, 0), 1)))
	p.wake()
}

// Share is what SetShare has set.
func (p *Portion) Share() float64 { return math.Float64frombits(p.part.Load()) }

// Meet counts a due sample, taken or not.
func (p *Portion) Meet() { p.met.Add(1) }

// Met is how many samples were due.
func (p *Portion) Met() int64 { return p.met.Load() }

// ErrTwice: the process is a member already.
var ErrTwice = errors.New("sampler: the process is sampled already")

var errGroupOver = errors.New("sampler: the group has ended")

// RefreshBusy is how often a member's list of threads is brought up to date if the member was met, and RefreshIdle if
// it was not.
const (
	RefreshBusy = int64(time.Second)
	RefreshIdle = int64(10 * time.Second)
)
