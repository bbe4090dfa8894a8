//go:build linux

package perf

import (
	"slices"

	"goprof/sampler/cpuset"
)

// Sampling on CPUs that are switched on during a run. Such a CPU has no events. A CPU that was off has lost the events
// that belonged to it (kernel/events/core.c, perf_event_exit_cpu). Without events, the threads there would have no
// samples. A machine that is suspended switches CPUs off and on (cpuset/asked.go). So goprof opens events on each CPU
// that is switched on. It does not notice a CPU that is switched off and on again between two looks (cpuset.Every).
// Threads there have no samples then, and the account says how much of the CPU time the samples cover.

// followCPUs opens events on CPUs that were switched on, and on all CPUs again if any of them may have been off
// meanwhile. If a CPU cannot have a ring, followCPUs tries again later.
func (r *perfRun) followCPUs() {
	if r.grouped || !r.asked.IsDue(r.now) {
		return
	}
	anew, before := r.asked.MissedMuch(r.now), r.online
	r.online = r.cfg.Online()
	if (anew || cpuset.HaveCome(before, r.online)) && !r.takeInCPUs() {
		r.online = before
	}
}

// takeInCPUs opens rings for the CPUs that have no ring, and opens all events again.
func (r *perfRun) takeInCPUs() bool {
	if !r.rings.takeIn(r.rings.without(r.online)) {
		return false
	}
	r.stopChecker()
	defer r.startChecker()
	r.drain() // the records of the old events
	r.unwatchAll()
	r.wide.reopen()
	r.checkWide()
	return true
}

// unwatchAll closes the events of all threads, so that new ones are opened.
func (r *perfRun) unwatchAll() {
	for _, th := range r.threads {
		r.unwatch(th)
	}
	r.round--
}

// without returns those of the CPUs that have no ring.
func (r *perfRings) without(cpus []int) (fresh []int) {
	for _, cpu := range cpus {
		if !slices.Contains(r.cpus, cpu) {
			fresh = append(fresh, cpu)
		}
	}
	return fresh
}
