//go:build linux

package ctest

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

// State is a thread's state letter, 0 if there is no such thread.
func State(pid, tid int) byte {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/stat", pid, tid))
	end := bytes.LastIndexByte(b, ')')
	if err != nil || end < 0 || end+2 >= len(b) {
		return 0
	}
	return b[end+2]
}

// AwaitAsleep waits until all threads of a program sleep, but for so many. A thread that is to sleep may have no CPU
// for that yet.
func AwaitAsleep(t testing.TB, p *Program, others int) {
	t.Helper()
	Eventually(t, "its threads sleep", func() bool {
		tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", p.PID))
		if err != nil {
			t.Fatal(err)
		}
		awake := 0
		for _, task := range tasks {
			if tid, _ := strconv.Atoi(task.Name()); State(p.PID, tid) != 'S' {
				if awake++; awake > others {
					return false
				}
			}
		}
		return true
	})
}

// TracerOf is the thread that traces any thread of the system, 0 if none.
func TracerOf(tid int) (tracer int) {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", tid))
	if _, rest, ok := bytes.Cut(b, []byte("\nTracerPid:\t")); ok {
		fmt.Sscan(string(rest), &tracer)
	}
	return tracer
}

// Ran is the CPU time that the kernel has charged a thread, in nanoseconds.
func Ran(t testing.TB, pid, tid int) (ran int64) {
	t.Helper()
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/schedstat", pid, tid))
	var waited, turns int64
	if n, _ := fmt.Sscan(string(b), &ran, &waited, &turns); n < 3 || turns == 0 {
		t.Skip("this kernel keeps no schedstat")
	}
	return ran
}

// AnyCPU is a set of one CPU that we may use.
func AnyCPU(t testing.TB) unix.CPUSet {
	var all, one unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		t.Fatal(err)
	}
	for cpu := 0; ; cpu++ {
		if all.IsSet(cpu) {
			one.Set(cpu)
			return one
		}
	}
}
