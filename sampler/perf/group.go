//go:build linux

package perf

import (
	"context"
	"errors"
	"time"

	"goprof/arch"
	"goprof/arch/cpus"
	"goprof/sampler"
)

// Group samples the CPU time of many processes, with one perf event for each CPU (wide.go).
//
// With an Engine for each process, a CPU would have as many timers as there are processes, and nearly all of their
// interrupts would find another process. In a Group all processes share one timer for each CPU. The kernel writes only
// samples of the Group's processes (its members), and draws by lot which of them it writes (chooser.go). No thread is
// stopped. While no member runs, goprof is not woken up.
type Group struct {
	*sampler.Members[*Member]
	cpu   *arch.CPU
	waker waker
}

// ErrNoWide: the kernel does not permit perf events of CPUs with a filter program.
var ErrNoWide = errors.New("sampler: perf events of CPUs are not permitted")

// NewGroup makes a group, with the same arguments as visit.NewGroup. It makes no visits.
func NewGroup(interval time.Duration, stack int) *Group {
	g := &Group{cpu: cpus.Here()}
	g.Members = sampler.NewMembers[*Member](interval, stack, g.waker.wake)
	return g
}

// Member is the part of a Group that samples one process. It is an Engine.
type Member struct {
	Engine
	*sampler.Portion
	group *Group

	// The fields of the sampling thread.
	run    *perfRun
	stop   <-chan struct{}
	chosen float64 // the share in the chooser's table
	kept   int64   // when its lists were last refreshed
	busy   bool    // it has had a sample since kept
	result chan error
}

// Member makes a member of the group. Before its Run it does not belong to the group.
func (g *Group) Member(pid int) *Member {
	return &Member{Engine: Engine{Base: sampler.NewBase(pid, g.cpu, g.waker.wake)}, group: g,
		Portion: sampler.NewPortion(g.waker.wake), result: make(chan error, 1)}
}

// Run joins the group until ctx is done, or the process or the group ends. The group decides on cfg.Interval, MaxStack
// and MaxOverhead. Run closes q.
func (m *Member) Run(ctx context.Context, cfg sampler.Config, q *sampler.Queue) (sampler.Stats, error) {
	cfg.Interval, cfg.MaxStack, cfg.MaxOverhead = m.group.Interval(), m.group.MaxStack, 0
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
		m.group.waker.wake()
		defer context.AfterFunc(ctx, m.group.waker.wake)()
		err := <-m.result
		return r.stats, err
	})
}
