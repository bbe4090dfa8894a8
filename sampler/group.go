//go:build linux

package sampler

import (
	"context"
	"errors"
	"math"
	"sync/atomic"
	"time"

	"goprof/arch"
	"goprof/process/procfs"
	"goprof/sampler/ptrace"
)

// Group samples the threads of many processes that use CPU time, with one visitor for all of them (visit.go).
//
// A Sampler visits each CPU once in an interval for its one process. For fifty processes that is fifty times the
// wake-ups, and nearly no Sampler meets its own process. A Group comes to each CPU once in an interval, and asks the
// kernel which thread it took the CPU from. The sample belongs to the process of that thread. So the cost of a Group
// while nobody works does not grow with the number of processes.
//
// A Group needs the kernel's notes of switches (switches.go). Without them it would have to ask each thread of each
// process.
type Group struct {
	muster[*Member]
	interval atomic.Int64
	stack    int
	counts   groupCounts
}

// groupCounts is what a Group has done, for any goroutine.
type groupCounts struct {
	visits, met, others, missed, cpu, members atomic.Int64
}

// GroupStats is what a Group has done so far.
type GroupStats struct {
	Visits  int64         // of CPUs
	Met     int64         // threads of members
	Others  int64         // threads of other processes
	Missed  int64         // visits that were left out because their moment had passed long ago
	Members int           // that are in it now
	CPU     time.Duration // of the sampling thread and its heralds, without what stops took of others
}

// ErrNoVisits: CPUs cannot be visited, or the kernel does not note who was on them.
var ErrNoVisits = errors.New("sampler: CPUs cannot be visited for several processes at once")

// errTwice: the process is a member already.
var errTwice = errors.New("sampler: the process is sampled already")

// errGroupOver ends members whose Group has ended.
var errGroupOver = errors.New("sampler: the group has ended")

// NewGroup makes a group. Its members are sampled once in interval, and their stacks are copied up to the size stack
// (0: DefaultStackLimit). Nothing happens before Run.
func NewGroup(interval time.Duration, stack int) *Group {
	if stack <= 0 {
		stack = ptrace.DefaultStackLimit
	}
	g := &Group{stack: stack, muster: newMuster[*Member]()}
	g.interval.Store(int64(max(interval, MinInterval)))
	return g
}

// Interval is the CPU time between two samples of a thread of a member that has its whole share.
func (g *Group) Interval() time.Duration { return time.Duration(g.interval.Load()) }

// SetInterval changes the Interval, from the next visit on.
func (g *Group) SetInterval(d time.Duration) { g.interval.Store(int64(max(d, MinInterval))) }

// Stats is what the group has done so far, from any goroutine.
func (g *Group) Stats() GroupStats { return g.counts.stats() }

func (c *groupCounts) stats() GroupStats {
	return GroupStats{Visits: c.visits.Load(), Met: c.met.Load(), Others: c.others.Load(),
		Missed: c.missed.Load(), Members: int(c.members.Load()), CPU: time.Duration(c.cpu.Load())}
}

// Member is the part of a Group that samples one process. It is an Engine.
type Member struct {
	progress
	hints
	group *Group
	pid   int
	cpu   *arch.CPU
	share atomic.Uint64 // a float64: the part of its samples that is taken
	met   atomic.Int64

	// Of the sampling thread.
	run     *run
	kept    int64 // when its house was kept
	busy    bool  // it was met since
	leaving int64 // since when the member is to leave; 0: it is not to leave
	result  chan error
}

// Member makes a member of the group. Before its Run it does not belong to the group.
func (g *Group) Member(pid int, cpu *arch.CPU) *Member {
	m := &Member{progress: newProgress(), group: g, pid: pid, cpu: cpu, result: make(chan error, 1)}
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
func (m *Member) Run(ctx context.Context, cfg Config, q *Queue) (Stats, error) {
	cfg.Interval, cfg.MaxStack, cfg.MaxOverhead = m.group.Interval(), m.group.stack, 0
	return m.runTraced(m.pid, m.cpu, cfg, q, func(proc *procfs.Dir, t *ptrace.Tracer) (Stats, error) {
		return m.join(ctx, cfg, q, proc, t)
	})
}

func (m *Member) join(ctx context.Context, cfg Config, q *Queue,
	proc *procfs.Dir, t *ptrace.Tracer) (Stats, error) {
	r := &run{capture: newCapture(t, proc, &m.progress, ctx.Done(), cfg, q), cpu: m.cpu, hints: &m.hints,
		scan: newScan(proc, cfg.Interval, groupFiles()), visiting: true}
	defer r.scan.close()
	r.late, r.sum = r.account, r.total
	r.scan.hotFor, r.scan.pools = visitHot, true
	m.run = r
	if !m.group.join(m) {
		return Stats{}, m.group.whyEnded()
	}
	err := <-m.result
	return r.stats, err
}

// groupFiles is how many descriptors one member may keep: the members of a group, a few hundred, share all that there
// are.
func groupFiles() int { return min(raiseFileLimit()/manySamplers, 64) }
