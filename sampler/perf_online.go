//go:build linux

package sampler

import (
	"runtime"
	"slices"
	"sync"

	"golang.org/x/sys/unix"
)

// CPUs that come while perf samples. A CPU that is switched on later has no events. A CPU that was off has lost the
// events that belonged to it (kernel/events/core.c, perf_event_exit_cpu). Threads there would have no samples, and
// nobody would be told. A machine that is suspended switches CPUs off and on (asked.go). But if somebody switches a CPU
// off and on again between two looks (followEvery), that is not noticed. Threads there have no samples then, and the
// account says how much of the CPU time the samples cover.

// followCPUs gives events to CPUs that have come, and to all CPUs anew if any may have been off meanwhile. If a CPU
// cannot have its ring, followCPUs tries again later.
func (r *perfRun) followCPUs() {
	if r.grouped || !r.asked.isDue(r.now) {
		return
	}
	anew, before := r.asked.missedMuch(r.now), r.online
	r.online = r.cfg.Online()
	if (anew || haveCome(before, r.online)) && !r.takeInCPUs() {
		r.online = before
	}
}

// haveCome reports whether there is a CPU now that was not there before.
func haveCome(before, now []int) bool {
	return slices.ContainsFunc(now, func(cpu int) bool { return !slices.Contains(before, cpu) })
}

// takeInCPUs opens rings for the CPUs that have no ring, and opens all events anew.
func (r *perfRun) takeInCPUs() bool {
	if !r.rings.takeIn(r.rings.without(r.online)) {
		return false
	}
	r.dismiss()
	defer r.post()
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

const onlineName = "/sys/devices/system/cpu/online"

// onlineFile is the descriptor of the list of CPUs. It stays open: engines read the list each second.
var onlineFile = sync.OnceValue(func() int {
	fd, err := unix.Open(onlineName, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1
	}
	return fd
})

// onlineCPUs are the CPUs that threads can run on now.
func onlineCPUs() []int {
	var buf [1024]byte
	n, _ := unix.Pread(onlineFile(), buf[:], 0)
	list := buf[:max(n, 0)]
	if len(list) == 0 { // it could not be opened, or another program stood in for it and has ended (lxcfs)
		list = readSmall(onlineName, buf[:])
	}
	if cpus := parseCPUList(list); len(cpus) > 0 {
		return cpus
	}
	cpus := make([]int, runtime.NumCPU())
	for i := range cpus {
		cpus[i] = i
	}
	return cpus
}
