//go:build linux

package diagnose

import (
	"errors"

	"goprof/sampler"
	"goprof/session"
)

// Choice is an engine, and what the user should know of it, if that is not empty.
type Choice struct {
	Engine session.EngineName
	Note   string
	Remedy string // a command; empty where there is none
}

// ChooseEngine finds the engine for a process. AutoEngine is perf where perf watches CPUs: it then sees all, and
// changes nothing. The error is not nil only if a user asks for an engine by name that does not work here.
func (h Host) ChooseEngine(want session.EngineName, pid int, maxOverhead float64) (Choice, error) {
	if want == session.PtraceEngine || want == "" {
		return Choice{Engine: session.PtraceEngine}, h.Traced(pid)
	}
	power, err := sampler.TryPerf(pid)
	if want == session.PerfEngine {
		if err == nil && !power.Kernel {
			return Choice{session.PerfEngine, "no samples of threads that are in the kernel (" + h.perfLevel() +
				"): the time of system calls is given to what comes after them", h.perfRemedy(1)}, nil
		}
		return Choice{Engine: session.PerfEngine}, err
	}
	why := h.whyNotPerf(pid, power, err, maxOverhead)
	if why == "" {
		return Choice{Engine: session.PerfEngine}, nil
	}
	if err == nil && maxOverhead == 0 { // perf sees less then, and holds nobody
		if unbounded, cure := session.StopsUnbounded(); unbounded != "" {
			return Choice{session.PerfEngine, "the engine is perf: a thread that goprof stops might be held for too long (" +
				unbounded + ")", cure}, nil
		}
	}
	return Choice{session.PtraceEngine, "the engine is ptrace: " + why, ""}, h.Traced(pid)
}

// whyNotPerf says why AutoEngine does not take perf; empty: it does.
func (h Host) whyNotPerf(pid int, power sampler.PerfPower, err error, maxOverhead float64) string {
	switch {
	case err != nil:
		return h.explainPerf(pid, err).Why
	case !power.Kernel:
		return "perf_event may not look at threads that are in the kernel (" + h.perfLevel() + ")"
	case maxOverhead > 0:
		return "what perf_event costs cannot be bounded, as --max-overhead wants"
	}
	if err := sampler.TryWide(power); err != nil {
		return session.ByThreads(err)
	}
	return ""
}

// isPerfError reports whether the kernel refused perf_event.
func isPerfError(err error) bool {
	var failed *sampler.PerfError
	return errors.As(err, &failed)
}
