//go:build linux

package sampler

import (
	"runtime"
	"slices"

	"golang.org/x/sys/unix"
)

// CPUs that come while perf samples. A CPU that is switched on later has no events. A CPU that was off has lost the
// events that belonged to it (kernel/events/core.c, perf_event_exit_cpu). Threads there would have no samples, and
// nobody would be told. A CPU that goes off and on again between two looks (followEvery) is not noticed. Threads there
// have no samples then, and the account says how much of the CPU time the samples cover.

// followCPUs gives events to CPUs that have come. If a CPU cannot have its ring, followCPUs tries again later.
func (r *perfRun) followCPUs() {
	if r.now-r.followedAt < followEvery {
		return
	}
	r.followedAt = r.now
	before := r.online
	r.online = r.cfg.Online()
	came := slices.ContainsFunc(r.online, func(cpu int) bool { return !slices.Contains(before, cpu) })
	if came && !r.takeInCPUs() {
		r.online = before
	}
}

// takeInCPUs opens rings for the CPUs that have no ring, and opens all events anew.
func (r *perfRun) takeInCPUs() bool {
	var fresh []int
	for _, cpu := range r.online {
		if !slices.Contains(r.cpus, cpu) {
			fresh = append(fresh, cpu)
		}
	}
	// All rings are opened, or none: a ring is found by its CPU's index.
	steady, err := r.openRings(fresh, ringShare(len(r.cpus)+len(fresh)))
	if err != nil {
		return false
	}
	var prompt []*perfRing
	if r.prompt != nil {
		if prompt, err = r.openRings(fresh, promptRing); err != nil {
			r.closeRings(steady)
			return false
		}
	}
	r.drain() // the records of the events that there were
	r.cpus = append(r.cpus, fresh...)
	r.steady, r.prompt = append(r.steady, steady...), append(r.prompt, prompt...)
	for _, th := range r.threads {
		r.unwatch(th)
	}
	r.round-- // so that all threads get theirs again
	if r.everyone != nil {
		r.reopenEveryone()
	}
	return true
}

// closeRings hands rings back.
func (r *perfRun) closeRings(rings []*perfRing) {
	for _, ring := range rings {
		r.polls = slices.DeleteFunc(r.polls, func(p unix.PollFd) bool { return p.Fd == int32(ring.fd) })
		ring.close()
	}
}

// onlineCPUs are the CPUs that threads can run on now.
func onlineCPUs() []int {
	var buf [1024]byte
	text := readSmall("/sys/devices/system/cpu/online", buf[:])
	if cpus := parseCPUList(text); len(cpus) > 0 {
		return cpus
	}
	cpus := make([]int, runtime.NumCPU())
	for i := range cpus {
		cpus[i] = i
	}
	return cpus
}
