//go:build linux

package session

import (
	"goprof/process"
	"goprof/profile"
	"goprof/sampler"
	"goprof/sampler/look"
	"goprof/vmstructs"
)

// EngineName says which engine takes the samples of a recording of CPU time.
type EngineName string

const (
	PtraceEngine EngineName = profile.EnginePtrace // stops a thread for the moment of a look
	PerfEngine   EngineName = profile.EnginePerf   // lets the kernel take samples; stops no thread
	AutoEngine   EngineName = "auto"               // PerfEngine where it works, otherwise PtraceEngine
)

// When goprof uses ptrace, and when perf_event. Stops by ptrace need no right that containers withhold. Their stacks
// are whole where those of perf_event end: stacks longer than 64 KB, frames of virtual threads in the heap if the
// kernel permits goprof no BPF program (half of a server's samples and more), frames during deoptimisation, and frames
// below native code without unwind information. If none of these matters, perf_event is better
// (docs/decisions/0024-which-engine-by-default.md).

var Engines = []EngineName{PtraceEngine, PerfEngine, AutoEngine}

// name is the engine's name in a profile's Meta.
func (e EngineName) name() string {
	if e == "" {
		return string(PtraceEngine)
	}
	return string(e)
}

// readSoon sets what the engine reads as soon as a thread runs again, and the trail that it follows during the look.
func (r *recording) readSoon(config *sampler.Config) {
	if r.can.ReadsLate {
		r.readSamplesSoon(config)
	} else {
		config.After, config.Trail = r.afterLook()
	}
}

// readSamplesSoon reads memory that will soon change, for threads that are not stopped. sampled is the last time at
// which the thread certainly was where it was sampled. If the kernel could not copy the Side at the sample, goprof now
// reads which continuation the thread runs. The result counts only if the copied stack leads to that continuation
// (process.Continuation.Late).
func (s *Session) readSamplesSoon(config *sampler.Config) {
	c, code := s.VM.NewContinuations().ReadFrom(s.memory), s.VM.NewSightings().ReadFrom(s.memory)
	config.Note = func(snap *look.Look) { code.Note(&snap.Snapshot, snap.When) }
	config.KnownIn = code.KeepIn
	if c == nil {
		config.After = func(snap *look.Look, sampled int64) { code.Note(&snap.Snapshot, sampled) }
		return
	}
	_, size := s.VM.Side()
	trail := new(process.Trail)
	config.Trail = trail
	if s.runsVirtual() && c.FindClasses() == nil { // otherwise the first samples find out
		c.Trail(trail)
	}
	read := func(snap *look.Look, sampled int64) {
		k := &snap.Continuation
		inTime := func() bool { return now()-sampled <= int64(s.Soon) }
		if len(snap.Side) > 0 {
			c.Read(&snap.Snapshot, snap.When)
			k.Settled = k.Together || k.Settled && inTime()
			c.Trail(trail)
			return
		}
		late := !inTime()
		if snap.SideAddr == 0 || late && trail.Known {
			return
		}
		if cap(snap.Side) < size {
			snap.Side = make([]byte, size)
		}
		snap.Side = snap.Side[:size]
		if s.memory.Read(snap.SideAddr, snap.Side) == nil {
			c.Read(&snap.Snapshot, snap.When)
			k.Late, k.Settled = true, k.Settled && inTime()
			c.Trail(trail)
		}
		if late { // the Side is of another time than the stack, and only shows where the trail leads
			k.Reset()
		}
		snap.Side = snap.Side[:0]
	}
	config.After = func(snap *look.Look, sampled int64) {
		read(snap, sampled)
		code.Note(&snap.Snapshot, sampled)
	}
}

// runsVirtual reports whether there are threads that may run virtual threads.
func (s *Session) runsVirtual() bool {
	return s.VM.NewContinuations() != nil && s.dir.refresh() == nil && s.dir.mayCarry()
}

// mayCarry reports whether any thread may run virtual threads.
func (d *directory) mayCarry() bool {
	for _, th := range d.threads {
		if th.mayCarry() {
			return true
		}
	}
	return false
}

func (th *listedThread) mayCarry() bool {
	return th.java.Addr != 0 && vmstructs.MayCarry(th.name)
}

// isCarrier reports whether a thread runs virtual threads, or may. Frames of virtual threads in the heap must be read
// soon after the look, from the first sample on.
func (r *recording) isCarrier(tid int) bool {
	if !r.can.ReadsLate {
		return false
	}
	th := r.dir.threads[tid]
	return r.carriers[tid] || th != nil && th.mayCarry()
}

// wantSoon makes the sampler read a thread's heap frames soon after each look, if the stack that was just walked is a
// virtual thread's.
func (r *recording) wantSoon(tid int, st *profile.Stack) {
	if !st.Mounted || r.hints[tid].Soon || !r.can.ReadsLate {
		return // even if the name shows a carrier by now, the sampler may not know yet
	}
	if r.carriers == nil {
		r.carriers = map[int]bool{}
	}
	r.carriers[tid] = true
	if h := r.hint(tid); r.sampler.Advise(tid, h) {
		r.hints[tid] = h
	}
}
