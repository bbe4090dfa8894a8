//go:build linux

package perf

import (
	"context"
	"errors"
	"math"
	"sync/atomic"
	"time"

	"goprof/arch"
	"goprof/arch/cpus"
	"goprof/sampler"
	"goprof/sampler/ptrace"
)

// Group samples the threads of many processes that use CPU time, with one perf event for each CPU (wide.go).
//
// With a Perf for each process a CPU has as many timers as there are processes, and nearly all of their interrupts meet
// another process. In a Group they share one. The kernel writes samples of members only, and draws by lot which of
// them it writes (chooser.go). Nobody is stopped, and nobody is woken up while no member runs.
type Group struct {
	sampler.Arrivals[*Member]
	cpu      *arch.CPU
	interval atomic.Int64
	stack    int
	counts   sampler.GroupCounts
	waker    waker
}

// ErrNoWide: the kernel does not permit perf events of CPUs with a program that chooses.
var ErrNoWide = errors.New("sampler: perf events of CPUs are not permitted")

// NewGroup makes a group, as visit.NewGroup does.
func NewGroup(interval time.Duration, stack int) *Group {
	if stack <= 0 {
		stack = ptrace.DefaultStackLimit
	}
	g := &Group{cpu: cpus.Here(), stack: stack, Arrivals: sampler.NewArrivals[*Member]()}
	g.SetInterval(interval)
	return g
}

// Interval is the CPU time between two samples of a thread of a member that has its whole share.
func (g *Group) Interval() time.Duration { return time.Duration(g.interval.Load()) }

// SetInterval changes the Interval soon.
func (g *Group) SetInterval(d time.Duration) {
	g.interval.Store(int64(max(d, sampler.MinInterval)))
	g.wake()
}

// Stats is what the group has done so far, from any goroutine. It makes no visits.
func (g *Group) Stats() sampler.GroupStats { return g.counts.Stats() }

// wake ends the sampling thread's sleep.
func (g *Group) wake() { g.waker.wake() }

// Member is the part of a Group that samples one process. It is an Engine.
type Member struct {
	Engine
	group *Group
	share atomic.Uint64 // a float64: the part of its samples that is taken
	met   atomic.Int64

	// Of the sampling thread.
	run    *perfRun
	stop   <-chan struct{}
	chosen float64 // the share that the kernel knows of
	kept   int64   // when its lists were refreshed
	busy   bool    // it had a sample since
	result chan error
}

// Member makes a member of the group. Before its Run it does not belong to the group.
func (g *Group) Member(pid int) *Member {
	m := &Member{Engine: Engine{Progress: sampler.NewProgress(), pid: pid, cpu: g.cpu}, group: g,
		result: make(chan error, 1)}
	m.Wake = g.wake
	m.SetShare(1)
	return m
}

// SetShare sets which part of the due samples is taken, drawn by lot. A sample then stands for Interval/share of CPU
// time. SetShare may be called from any goroutine.
func (m *Member) SetShare(share float64) {
	m.share.Store(math.Float64bits(min(max(share, 0), 1)))
	m.group.wake()
}

// Share is what SetShare has set.
func (m *Member) Share() float64 { return math.Float64frombits(m.share.Load()) }

// Met is how many samples there were, taken or lost.
func (m *Member) Met() int64 { return m.met.Load() }

// Run joins the group until ctx is done, the process ends or the group does; cfg.Interval, MaxStack and MaxOverhead are
// the group's business. It closes q.
func (m *Member) Run(ctx context.Context, cfg sampler.Config, q *sampler.Queue) (sampler.Stats, error) {
	cfg.Interval, cfg.MaxStack, cfg.MaxOverhead = m.group.Interval(), m.group.stack, 0
	return m.RunEngine(cfg, q, func() (sampler.Stats, error) {
		r := newPerfRun(&m.Engine, cfg, q)
		defer r.proc.Close()
		if !r.proc.Exists() {
			return sampler.Stats{}, sampler.ErrNoProcess
		}
		m.run, m.stop = r, ctx.Done()
		if !m.group.Join(m) {
			return sampler.Stats{}, m.group.WhyEnded()
		}
		m.group.wake()
		defer context.AfterFunc(ctx, m.group.wake)()
		err := <-m.result
		return r.stats, err
	})
}
