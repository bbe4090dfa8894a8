//go:build linux

package diagnose

import (
	"errors"

	"goprof/sampler"
	"goprof/sampler/session"
)

// Choice is an engine, and what the user should know of it, if that is not empty.
type Choice struct {
	Engine session.EngineName
	Note   string
	Remedy string // a command; empty where there is none
}

// ChooseEngine finds the engine for a process. virtual says whether the process runs virtual threads. The error is not
// nil only if a user asks for an engine by name that does not work here.
func (h Host) ChooseEngine(want session.EngineName, pid int, maxOverhead float64, virtual bool) (Choice, error) {
	if want == session.PtraceEngine || want == "" {
		return Choice{Engine: session.PtraceEngine}, h.Traced(pid)
	}
	power, err := sampler.TryPerf(pid)
	switch {
	case want == session.PerfEngine && err != nil:
		return Choice{}, err
	case want == session.PerfEngine && !power.Kernel:
		return Choice{session.PerfEngine, "no samples of threads that are in the kernel (" + h.perfLevel() +
			"): the time of system calls is given to what comes after them", h.perfRemedy(1)}, nil
	case want == session.PerfEngine:
		return Choice{Engine: session.PerfEngine}, nil
	case err != nil:
		c := h.explainPerf(pid, err)
		return Choice{session.PtraceEngine, "the engine is ptrace: " + c.Why, ""}, h.Traced(pid)
	case !power.Kernel:
		return Choice{session.PtraceEngine, "the engine is ptrace: perf_event may not look at threads that are in the " +
			"kernel (" + h.perfLevel() + ")", ""}, h.Traced(pid)
	case maxOverhead > 0:
		return Choice{session.PtraceEngine, "the engine is ptrace: what perf_event costs cannot be bounded, as " +
			"--max-overhead wants", ""}, h.Traced(pid)
	case virtual:
		if err := sampler.TryCopies(); err != nil {
			return Choice{session.PtraceEngine, "the engine is ptrace: there seem to be virtual threads, whose frames in " +
				"the heap a BPF program has to copy: " + h.explainPerf(pid, err).Why, ""}, h.Traced(pid)
		}
	}
	return Choice{Engine: session.PerfEngine}, nil
}

// isPerfError reports whether the kernel refused perf_event.
func isPerfError(err error) bool {
	var failed *sampler.PerfError
	return errors.As(err, &failed)
}
