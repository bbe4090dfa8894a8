//go:build linux

package visit

import (
	"context"
	"errors"
	"time"

	"goprof/arch"
	"goprof/sampler"
	"goprof/sampler/stops"
	"goprof/sampler/threads"
)

// Group samples the CPU time of many processes, with one set of visits for all of them (visit.go).
//
// An Engine visits each CPU once in an interval for its one process. Fifty Engines have fifty times the wake-ups, and
// hardly any visit finds its own process. A Group visits each CPU once in an interval, and asks the kernel which thread
// it took the CPU from. The sample belongs to the process of that thread. So a Group whose processes do not work costs
// the same for fifty processes as for one.
//
// A Group needs the kernel's notes of switches (switches.go). Without the notes it would have to ask each thread of
// each process.
type Group struct {
	*sampler.Members[*Member]
	stock sampler.Stock
}

// ErrNoVisits: CPUs cannot be visited, or the kernel does not note which threads were on them.
var ErrNoVisits = errors.New("sampler: CPUs cannot be visited for several processes at once")

// NewGroup makes a group. Each member has one sample in interval of CPU time. stack bounds the copies of stacks (0:
// DefaultStackLimit). Nothing happens before Run.
func NewGroup(interval time.Duration, stack int) *Group {
	g := &Group{Members: sampler.NewMembers[*Member](interval, stack, func() {})} // its sleeps are short: nothing wakes it
	g.stock.Fill()
	return g
}

// Member is the part of a Group that samples one process. It is an Engine.
type Member struct {
	sampler.Base
	*sampler.Portion
	group *Group

	// The fields of the sampling thread.
	run     *run
	kept    int64 // when its lists were last refreshed
	busy    bool  // a visit has met it since kept
	leaving int64 // since when the member has been leaving; 0: it stays
	result  chan error
}

// Member makes a member of the group. Before its Run it does not belong to the group.
func (g *Group) Member(pid int, cpu *arch.CPU) *Member {
	return &Member{Base: sampler.NewBase(pid, cpu, nil), Portion: sampler.NewPortion(func() {}), group: g,
		result: make(chan error, 1)}
}

// Run joins the group until ctx is done, or the process or the group ends. The group decides on cfg.Interval, MaxStack
// and MaxOverhead. Run closes q.
func (m *Member) Run(ctx context.Context, cfg sampler.Config, q *sampler.Queue) (sampler.Stats, error) {
	cfg.Interval, cfg.MaxStack, cfg.MaxOverhead = m.group.Interval(), m.group.MaxStack, 0
	return stops.Trace(ctx, &m.Base, cfg, q, m.join)
}

func (m *Member) join(c stops.Run, cfg sampler.Config) (sampler.Stats, error) {
	r := &run{Run: c, cpu: m.CPU, hints: &m.Hints, scan: threads.New(c.Proc, cfg.Interval, threads.GroupFiles()),
		visiting: true}
	defer r.scan.Close()
	r.Late, r.Sum = r.account, r.total
	r.scan.Keep(threads.Upkeep{HotFor: visitHot, Relist: threads.ListEvery, Pools: true})
	r.Queue.TakeFrom(&m.group.stock)
	m.run = r
	if !m.group.Join(m) {
		return sampler.Stats{}, m.group.WhyEnded()
	}
	err := <-m.result
	return r.Stats, err
}
