//go:build linux

package ptrace

import (
	"testing"

	"golang.org/x/sys/unix"

	"goprof/testdata/ctest"
)

// Leaving a CPU does not change where the thread may run afterwards. If there is no other CPU, leaving fails.
func TestLeaveCPU(t *testing.T) {
	one := ctest.AnyCPU(t)
	OnOwnThread(func() {
		var before, after, again cpuMask
		size, ok := before.get(0)
		if !ok {
			t.Fatal("no CPU mask")
		}
		cpu := CurrentCPU()
		if moved := new(cpuMask).leave(cpu); moved != (cpuCount(before) > 1) {
			t.Errorf("left CPU %d of %d: %v", cpu, cpuCount(before), moved)
		}
		if after.get(0); after != before {
			t.Errorf("allowed on %v, before on %v", after[0], before[0])
		}
		if new(cpuMask).elsewhere(-1, true) {
			t.Error("away from an unknown CPU")
		}
		if err := unix.SchedSetaffinity(0, &one); err != nil {
			t.Fatal(err)
		}
		if new(cpuMask).elsewhere(CurrentCPU(), true) {
			t.Error("left the only CPU")
		}
		if again.get(0); cpuCount(again) != 1 {
			t.Errorf("allowed on %d CPUs", cpuCount(again))
		}
		before.set(0, size)
	})
}

// TestNoMoveWhileStopsArePending: a thread does not move while stops are pending. Another thread may have the other CPU
// for long, and the threads that stop meanwhile would have to wait.
func TestNoMoveWhileStopsArePending(t *testing.T) {
	late := make([]pendingStop, 1)
	for _, c := range []struct {
		tr   Tracer
		want bool
	}{{Tracer{}, true}, {Tracer{Stay: true}, false}, {Tracer{pending: late}, false}} {
		if got := c.tr.mayMove(); got != c.want {
			t.Errorf("stays %v, %d pending: moves %v", c.tr.Stay, c.tr.Pending(), got)
		}
	}
}

func cpuCount(m cpuMask) int {
	n := 0
	for cpu := range len(m) * 64 {
		n += int(m[cpu/64] >> (cpu % 64) & 1)
	}
	return n
}
