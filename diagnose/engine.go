//go:build linux

package diagnose

import (
	"errors"

	"goprof/sampler/perf"
	"goprof/sampler/ring"
	"goprof/session"
)

// Choice is an engine, and a note for the user, which may be empty.
type Choice struct {
	Engine session.EngineName
	Note   string
	Remedy string // a command; empty if there is none
}

// ChooseEngine finds the engine for a process. AutoEngine becomes perf if perf may watch CPUs. The error is nil unless
// a user asks for an engine that does not work here.
func (h Host) ChooseEngine(want session.EngineName, pid int, maxOverhead float64) (Choice, error) {
	if want == session.PtraceEngine || want == "" {
		return Choice{Engine: session.PtraceEngine}, h.Traced(pid)
	}
	err := perf.TryWide(pid)
	if want == session.PerfEngine || err == nil && maxOverhead == 0 {
		return Choice{Engine: session.PerfEngine}, err
	}
	c := Cause{Why: "what perf_event costs cannot be bounded, as --max-overhead wants"}
	if err != nil {
		c = h.Explain(pid, err)
	}
	return Choice{session.PtraceEngine, "the engine is ptrace: " + c.Why, c.Remedy}, h.Traced(pid)
}

// isPerfError reports whether the kernel refused perf_event.
func isPerfError(err error) bool {
	_, ok := errors.AsType[*ring.Error](err)
	return ok
}
