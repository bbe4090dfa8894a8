//go:build linux

package visit

import (
	"slices"

	"golang.org/x/sys/unix"

	"goprof/sampler/cpuset"
)

// CPUs that become available during a run: switched on, or off and on again, or given to the program. Threads that run
// on a CPU without visits would have no samples, without any sign of it.

// follow updates the list of CPUs once in a while. It returns false if goprof cannot run on one of these CPUs.
func (v *visits) follow(now int64) bool {
	if !v.asked.IsDue(now) {
		return true
	}
	cpus := v.theirs()
	anew := v.asked.MissedMuch(now)
	return cpus == nil || v.takeIn(cpus, anew)
}

// theirs returns the CPUs on which the program may run (kernel/sched/syscalls.c, sched_getaffinity: only CPUs that are
// on), nil if the kernel does not answer.
func (v *visits) theirs() []int {
	allows, ok := cpuset.Affinity(v.of)
	if !ok {
		return nil
	}
	return listOf(&allows)
}

// meetAgain updates which of the visited CPUs are available, right before new preempters start. The method follow takes
// in new CPUs.
func (v *visits) meetAgain(now int64) {
	cpus, anew := v.theirs(), v.asked.MissedMuch(now)
	for i := range v.cpus {
		if back := v.cpus[i].setGone(cpus); back || anew && !v.cpus[i].gone {
			v.renewNotes(&v.cpus[i])
		}
	}
}

// setGone updates whether a CPU is available, if the available ones are known. It reports whether the CPU is back.
func (c *visited) setGone(there []int) (back bool) {
	was := c.gone
	if there != nil {
		c.gone = !slices.Contains(there, c.number)
	}
	return was && !c.gone
}

// takeIn adds CPUs to the visited ones. anew says that all CPUs may have been switched off and on meanwhile. takeIn
// returns false if one of the CPUs cannot have a preempter.
func (v *visits) takeIn(cpus []int, anew bool) bool {
	for i := range v.cpus {
		cpu := &v.cpus[i]
		back := cpu.setGone(cpus)
		switch {
		case cpu.gone:
			v.preempters.Recall(i)
		case back || anew:
			v.preempters.Recall(i) // the preempter reads the notes
			v.renewNotes(cpu)
			if v.preempters.SendAgain(i, cpu.number, cpu.notes.shared()) != nil {
				return false
			}
		case !v.preempters.Stay(i):
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
		if v.preempters.Send(number, cpu.notes.shared()) != nil {
			return false
		}
	}
	return true
}

// renewNotes asks again for the notes of a CPU: the kernel ended the old notes when the CPU was switched off
// (kernel/events/core.c, perf_event_exit_cpu).
func (v *visits) renewNotes(cpu *visited) {
	if v.noNotes {
		return
	}
	cpu.notes.close()
	cpu.notes = openSwitches(cpu.number)
	cpu.notes.watch(true)
}

// comesTo reports whether all of these CPUs are visited. If goprof may run only on some CPUs (cpuset, taskset), it
// would miss the threads that run on others, without any sign of it.
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
