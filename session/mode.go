//go:build linux

package session

import (
	"goprof/profile"
	"goprof/sampler"
	"goprof/sampler/events"
	"goprof/sampler/look"
	"goprof/sampler/offcpu"
	"goprof/sampler/perf"
	"goprof/sampler/visit"
	wallclock "goprof/sampler/wall"
)

// Mode says which threads a recording looks at.
type Mode string

const (
	CPUMode     Mode = profile.ModeCPU    // those that use CPU time
	WallMode    Mode = profile.ModeWall   // all, whatever they do
	WaitingMode Mode = profile.ModeOffCPU // those that wait for something
	TTSPMode    Mode = profile.ModeTTSP   // those that a safepoint waits for
)

// IsWall reports whether the mode looks at every thread in turn, so that a look stands for passing time.
func (m Mode) IsWall() bool { return m == WallMode || m == WaitingMode || m == TTSPMode }

// name is the mode's name in a profile's Meta.
func (m Mode) name() string {
	if m == "" {
		return string(CPUMode)
	}
	return string(m)
}

// choose sets how a recording takes samples, and how it counts them. No other file asks for mode or engine.
func (r *recording) choose() {
	s, opt, plan := r.Session, &r.opt, r.opt.Event
	pid, cpu := s.Process.PID(), s.Process.CPU()
	switch {
	case plan != nil:
		engine := events.New(pid, cpu, plan.list, opt.Kernel)
		r.sampler, r.events, r.shares = engine, s.newEventReader(), r.allocShares(plan)
		r.unfreed, r.events.io = newUnfreed(plan), newIOBook(plan, pid)
		if r.shares != nil {
			engine.ReadContents(r.shares.contents)
		}
		r.manner = &eventful{recording: r, plan: plan}
	case opt.Mode.IsWall():
		w := newWall(r)
		r.manner, w.waits = w, opt.Mode == WaitingMode
		looks := wallclock.Options{NonBlocking: opt.NonBlocking, NativeOnce: opt.NativeOnce, WaitingOnly: w.waits,
			During: s.readWaits(w.waits)}
		if opt.Mode == TTSPMode {
			w.gathers, r.newThreads, looks.Gather = s.safepoints, s.safepoints.strangers, s.safepoints.gather()
		}
		r.sampler = wallclock.New(pid, cpu, looks)
		if w.waits && opt.Engine == PerfEngine {
			r.sampler = offcpu.New(pid, cpu, offcpu.Options{Min: opt.Min, During: looks.During, Wakers: opt.Wakers})
			w.wantWakers()
		}
		w.switches = r.sampler.Abilities().Switches
		if w.gathers == nil {
			r.unmounted = newUnmounted(w)
		}
	default:
		r.manner = s.newCPUTime(r)
		r.sampler = s.cpuEngine(opt)
	}
	r.can = r.sampler.Abilities()
}

func (s *Session) cpuEngine(opt *RecordOptions) sampler.Engine {
	pid, cpu := s.Process.PID(), s.Process.CPU()
	switch {
	case opt.Member != nil:
		return opt.Member(pid)
	case opt.Engine != PerfEngine:
		return visit.New(pid, cpu)
	}
	perf := perf.New(pid, cpu)
	if opt.Kernel {
		perf.WantKernel()
	}
	return perf
}

// readWaits returns a function that reads what the JVM knows of a waiting thread. whose: it also reads the class of the
// object that the thread waits for.
func (s *Session) readWaits(whose bool) func(*look.Look) {
	waits := s.VM.NewWaits(whose).ReadFrom(s.memory)
	return func(snap *look.Look) { snap.Waiting.Java = waits.Read(&snap.Snapshot, snap.Waiting.Call) }
}
