//go:build linux

package sampler

import (
	"slices"

	"golang.org/x/sys/unix"
)

// CPUs that come while goprof works: switched on, or off and on again, or given to the program. Threads that run on a
// CPU that nobody visits would have no samples, and nobody would be told.

// followEvery is how often the engines ask which CPUs there are.
const followEvery = int64(1e9)

// follow brings the list of CPUs up to date, once in a while. It asks the kernel on which CPUs a thread of the program
// may run (kernel/sched/syscalls.c, sched_getaffinity: only CPUs that are on). It returns false where goprof cannot go
// to one of these CPUs.
func (v *visits) follow(now int64, tid int) bool {
	if now-v.followedAt < followEvery {
		return true
	}
	v.followedAt = now
	allows, ok := affinity(tid)
	return !ok || v.takeIn(listOf(&allows))
}

// takeIn adds these CPUs to the visits. It returns false where a CPU cannot have a herald.
func (v *visits) takeIn(cpus []int) bool {
	for i := range v.cpus {
		cpu := &v.cpus[i]
		back := cpu.gone
		cpu.gone = !slices.Contains(cpus, cpu.number)
		switch {
		case cpu.gone:
			v.heralds.Recall(i)
		case back:
			v.renewNotes(cpu)
			if v.heralds.SendAgain(i, cpu.number, cpu.notes.shared()) != nil {
				return false
			}
		case !v.heralds.Stay(i):
			return false
		}
	}
	for _, number := range cpus {
		if v.comesTo([]int{number}) {
			continue
		}
		v.cpus = append(v.cpus, visited{number: number})
		cpu := &v.cpus[len(v.cpus)-1]
		v.renewNotes(cpu)
		if v.heralds.Send(number, cpu.notes.shared()) != nil {
			return false
		}
	}
	return true
}

// renewNotes asks anew for the notes of a CPU: the kernel ended the old notes when the CPU was switched off
// (kernel/events/core.c, perf_event_exit_cpu).
func (v *visits) renewNotes(cpu *visited) {
	if v.noNotes {
		return
	}
	cpu.notes.close()
	cpu.notes = openSwitches(cpu.number)
	cpu.notes.watch(true)
}

// comesTo reports whether all of these CPUs are visited. A goprof that is kept to some CPUs (cpuset, taskset) would
// never meet threads that run on others, and nobody would be told.
func (v *visits) comesTo(cpus []int) bool {
	for _, cpu := range cpus {
		if !slices.ContainsFunc(v.cpus, func(c visited) bool { return c.number == cpu }) {
			return false
		}
	}
	return true
}

func listOf(set *unix.CPUSet) (cpus []int) {
	for cpu := range len(set) * 64 {
		if set.IsSet(cpu) {
			cpus = append(cpus, cpu)
		}
	}
	return cpus
}
