//go:build linux

package perf

import (
	"slices"

	"goprof/sampler/cpuset"
)

// How perf samples on CPUs that are switched on during a run. Such a CPU has no events. A CPU that was off has lost the
// events that belonged to it (kernel/events/core.c, perf_event_exit_cpu). Without events, the threads there would have
// no samples. A machine that is suspended switches CPUs off and on (cpuset/asked.go). So this file opens events on each
// CPU that is switched on. It misses a CPU that is switched off and on again between two looks (cpuset.Every). Threads
// there have no samples then, and the account says how much of the CPU time the samples cover.

// followCPUs gives events to CPUs that have come, and to all CPUs again if any may have been off meanwhile. If a CPU
// cannot have its ring, followCPUs tries again later.
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
	r.drain() // the records of the events that there were
	r.unwatchAll()
	r.wide.reopen()
	r.checkWide()
	return true
}

// unwatchAll closes the events of all threads, so that they get theirs again.
func (r *perfRun) unwatchAll() {
	for _, th := range r.threads {
		r.unwatch(th)
	}
	r.round--
}

// without are those of some CPUs that have no ring.
func (r *perfRings) without(cpus []int) (fresh []int) {
	for _, cpu := range cpus {
		if !slices.Contains(r.cpus, cpu) {
			fresh = append(fresh, cpu)
		}
	}
	return fresh
}
