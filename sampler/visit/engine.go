//go:build linux

package visit

import (
	"context"
	"time"

	"goprof/arch"
	"goprof/sampler"
	"goprof/sampler/look"
	"goprof/sampler/ptrace"
	"goprof/sampler/stops"
	"goprof/sampler/threads"
)

// Engine samples the threads of one process that use CPU time.
type Engine struct {
	sampler.Base
	fds int // how many descriptors the List may keep; 0: as many as it can
}

// New makes a sampler of pid.
func New(pid int, cpu *arch.CPU) *Engine {
	return &Engine{Base: sampler.NewBase(pid, cpu, nil)}
}

// Run samples until ctx is done or the process ends; both are normal ends. It closes q.
// It works on OS threads of its own, which end with it. Run is called once.
func (s *Engine) Run(ctx context.Context, cfg sampler.Config, q *sampler.Queue) (sampler.Stats, error) {
	return stops.Trace(ctx, &s.Base, cfg, q, s.run)
}

type run struct {
	stops.Run
	cpu      *arch.CPU
	hints    *sampler.Hints
	scan     *threads.List
	visits   *visits    // nil where visits cannot be made
	visiting bool       // CPUs are visited, from this OS thread (visit.go)
	spare    *look.Look // the next look fills it; nil: there is none

	spentBefore int64 // CPU time of this OS thread at the end of the last tick
	dueMean     int64 // threads due in a tick, in dueUnit: see manyDue
}

func (s *Engine) run(c stops.Run, cfg sampler.Config) (sampler.Stats, error) {
	fds := threads.FilesFor(&cfg)
	if s.fds > 0 {
		fds = s.fds
	}
	visits, why := newVisits(s.PID, &cfg) // this may take a while, so the List's accounts begin later
	defer visits.closeNotes()             // deferred, so that it is also done if the visits are given up
	r := &run{Run: c, cpu: s.CPU, hints: &s.Hints, scan: threads.New(c.Proc, cfg.Interval, fds), visits: visits}
	defer r.scan.Close()
	r.Stats.NoVisits = why
	r.Late, r.Sum, r.Hand = r.account, r.total, r.Queue.Keep
	r.Queue.MakeAll()
	r.Queue.Begin(ptrace.Monotonic())
	stats, err := r.RunInShifts(r.loop, r.scan.ReadAllCharges)
	if err == nil && onlyUnstopped(&stats) {
		err = &sampler.NotPermittedError{PID: s.PID}
	}
	return stats, err
}

// onlyUnstopped reports whether goprof may stop no thread, so that all samples are of threads that slept.
func onlyUnstopped(s *sampler.Stats) bool {
	return s.Pauses.Count() == 0 && s.Lost[ptrace.NotPermitted] > 0
}

// loop samples on one OS thread, until the run is over or goprof is to be suspended. If CPUs can be visited, each turn
// makes a visit. Otherwise each turn looks at the threads that have used an interval of CPU time.
func (r *run) loop() {
	visited := r.visiting
	if r.visiting = r.beginVisits(); r.visiting {
		r.Preempters = r.visits.preempters
		r.Tracer.ServedBy(r.Preempters)
		r.Preempters.Want(r.scan.Proc.PID)
		defer r.endVisits()
		upkeep := threads.Upkeep{HotFor: visitHot, Relist: threads.ListEvery, Pools: true}
		if r.visits.cpus[0].notes != nil {
			upkeep.Relist = listNoted
		}
		r.scan.Keep(upkeep)
		r.Stats.Gap = max(r.Stats.Gap, time.Duration(r.scan.Begin()))
		r.takeHints() // the first look at a thread already needs them
	} else if r.notVisiting(); visited || r.Stats.Ticks == 0 { // otherwise the ticks since the last shift were missed
		r.beginTicks()
	}
	r.spentBefore = r.scan.OwnCPUTime()
	rest := int64(0)
	for r.Sleep(r.nextLook(rest)) {
		spent := r.spentBefore
		if r.visiting {
			r.visitNext()
		} else {
			r.lookAround()
			r.Stats.Ticks++
		}
		if r.Over() {
			return
		}
		r.spentBefore = r.scan.OwnCPUTime()
		spent = r.spentBefore - spent
		now := ptrace.Monotonic()
		rest = now + spent // the sampling thread never has more than half of a CPU
		if r.visiting {
			r.Rest = r.visits.rest(now, spent)
		} else {
			r.NextTick()
		}
		r.LengthenInterval()
		r.scan.Interval = int64(r.Ticks.Interval)
	}
}

// nextLook returns the moment of the next tick, which is not before rest. If CPUs are visited, it returns when to
// refresh the lists, at the latest.
func (r *run) nextLook(rest int64) int64 {
	if r.visiting {
		now := ptrace.Monotonic()
		r.visits.tell(now, int64(r.Ticks.Interval))
		return now + napFor(int64(r.Ticks.Interval))
	}
	return max(r.Ticks.At()+r.Ticks.RandomWithin(int64(r.Ticks.Interval)), rest)
}

// lookAround looks at threads that have used an interval of CPU time and whose state is R.
func (r *run) lookAround() {
	gap := r.scan.Begin()
	r.Stats.Gap = max(r.Stats.Gap, time.Duration(gap))
	r.takeHints() // also the hints for threads that have just been met
	due := int64(0)
	for th := r.scan.Next(); th != nil; th = r.scan.Next() {
		r.look(th)
		r.Collect()
		due++
	}
	r.countDue(due)
}

func (r *run) takeHints() {
	r.hints.Take(r.scan.SetHint, true)
}

func (r *run) total() sampler.Stats {
	r.countVisits()
	s := r.SoFar()
	if r.visits != nil {
		s.CPU += time.Duration(r.visits.cpu)
	}
	s.Threads = len(r.scan.ByTID)
	s.Visits = r.visiting
	s.Times = r.scan.Sum(r.Over())
	return s
}
