//go:build linux

package visit

import (
	"context"
	"errors"
	"math"
	"sync/atomic"
	"time"

	"goprof/arch"
	"goprof/process/procfs"
	"goprof/sampler"
	"goprof/sampler/ptrace"
	"goprof/sampler/threads"
	"goprof/sampler/traced"
)

// Group samples the threads of many processes that use CPU time, with one visitor for all of them (visit.go).
//
// An Engine visits each CPU once in an interval for its one process. For fifty processes that is fifty times the
// wake-ups, and nearly no Engine meets its own process. A Group comes to each CPU once in an interval, and asks the
// kernel which thread it took the CPU from. The sample belongs to the process of that thread. So the cost of a Group
// while nobody works does not grow with the number of processes.
//
// A Group needs the kernel's notes of switches (switches.go). Without them it would have to ask each thread of each
// process.
type Group struct {
	sampler.Arrivals[*Member]
	interval atomic.Int64
	stack    int
	counts   sampler.GroupCounts
}

// ErrNoVisits: CPUs cannot be visited, or the kernel does not note who was on them.
var ErrNoVisits = errors.New("sampler: CPUs cannot be visited for several processes at once")

// NewGroup makes a group. Its members are sampled once in interval, and their stacks are copied up to the size stack
// (0: DefaultStackLimit). Nothing happens before Run.
func NewGroup(interval time.Duration, stack int) *Group {
	if stack <= 0 {
		stack = ptrace.DefaultStackLimit
	}
	g := &Group{stack: stack, Arrivals: sampler.NewArrivals[*Member]()}
	g.interval.Store(int64(max(interval, sampler.MinInterval)))
	return g
}

// Interval is the CPU time between two samples of a thread of a member that has its whole share.
func (g *Group) Interval() time.Duration { return time.Duration(g.interval.Load()) }

// SetInterval changes the Interval, from the next visit on.
func (g *Group) SetInterval(d time.Duration) { g.interval.Store(int64(max(d, sampler.MinInterval))) }

// Stats is what the group has done so far, from any goroutine.
func (g *Group) Stats() sampler.GroupStats { return g.counts.Stats() }

// Member is the part of a Group that samples one process. It is an Engine.
type Member struct {
	sampler.Progress
	sampler.Hints
	group *Group
	pid   int
	cpu   *arch.CPU
	share atomic.Uint64 // a float64: the part of its samples that is taken
	met   atomic.Int64

	// Of the sampling thread.
	run     *run
	kept    int64 // when its lists were refreshed
	busy    bool  // it was met since
	leaving int64 // since when the member is to leave; 0: it is not to leave
	result  chan error
}

// Member makes a member of the group. Before its Run it does not belong to the group.
func (g *Group) Member(pid int, cpu *arch.CPU) *Member {
	m := &Member{Progress: sampler.NewProgress(), group: g, pid: pid, cpu: cpu, result: make(chan error, 1)}
	m.SetShare(1)
	return m
}

// SetShare sets which part of the due samples is taken, drawn by lot. A sample then stands for Interval/share of CPU
// time. SetShare may be called from any goroutine.
func (m *Member) SetShare(share float64) { m.share.Store(math.Float64bits(min(max(share, 0), 1))) }

// Share is what SetShare has set.
func (m *Member) Share() float64 { return math.Float64frombits(m.share.Load()) }

// Met is how often the process was met on a CPU, whether a sample was taken or not.
func (m *Member) Met() int64 { return m.met.Load() }

// Run joins the group until ctx is done, the process ends or the group does; cfg.Interval, MaxStack and MaxOverhead are
// the group's business. It closes q.
func (m *Member) Run(ctx context.Context, cfg sampler.Config, q *sampler.Queue) (sampler.Stats, error) {
	cfg.Interval, cfg.MaxStack, cfg.MaxOverhead = m.group.Interval(), m.group.stack, 0
	return traced.Trace(&m.Progress, m.pid, m.cpu, cfg, q,
		func(proc *procfs.Dir, t *ptrace.Tracer) (sampler.Stats, error) {
			return m.join(ctx, cfg, q, proc, t)
		})
}

func (m *Member) join(ctx context.Context, cfg sampler.Config, q *sampler.Queue,
	proc *procfs.Dir, t *ptrace.Tracer) (sampler.Stats, error) {
	r := &run{Run: traced.NewRun(t, proc, &m.Progress, ctx.Done(), cfg, q), cpu: m.cpu, hints: &m.Hints,
		scan: threads.New(proc, cfg.Interval, threads.GroupFiles()), visiting: true}
	defer r.scan.Close()
	r.Late, r.Sum = r.account, r.total
	r.scan.HotFor, r.scan.Pools = visitHot, true
	m.run = r
	if !m.group.Join(m) {
		return sampler.Stats{}, m.group.WhyEnded()
	}
	err := <-m.result
	return r.Stats, err
}

func (m *Member) Abilities() sampler.Abilities { return sampler.Abilities{} }
