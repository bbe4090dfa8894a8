//go:build linux

package guard

import (
	"fmt"
	"runtime"
	"strconv"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

func init() { children["cost"] = childCost }

// childCost times the calls of a pause before and after it enters the guard: the best of many rounds, in ns.
func childCost() {
	runtime.LockOSThread()
	var ts unix.Timespec
	var b byte
	local := unix.Iovec{Base: &b, Len: 1}
	remote := unix.RemoteIovec{Base: uintptr(unsafe.Pointer(&ts)), Len: 1}
	pid := uintptr(unix.Getpid())
	calls := map[string]func(){
		"clock_gettime": func() {
			unix.RawSyscall(unix.SYS_CLOCK_GETTIME, unix.CLOCK_MONOTONIC, uintptr(unsafe.Pointer(&ts)), 0)
		},
		"process_vm_readv": func() {
			unix.RawSyscall6(unix.SYS_PROCESS_VM_READV, pid, uintptr(unsafe.Pointer(&local)), 1,
				uintptr(unsafe.Pointer(&remote)), 1, 0)
		},
		"waitid": func() { unix.RawSyscall6(unix.SYS_WAITID, 1, pid, 0, unix.WEXITED|unix.WNOHANG, 0, 0) },
		"ptrace": func() { unix.RawSyscall6(unix.SYS_PTRACE, unix.PTRACE_DETACH, pid, 0, 0, 0, 0) },
	}
	for _, when := range []string{"before", "after"} {
		if when == "after" {
			Enter(ToRecord)
		}
		for name, call := range calls {
			best := time.Hour
			for range 200 {
				began := time.Now()
				for range 200 {
					call()
				}
				best = min(best, time.Since(began)/200)
			}
			fmt.Printf("%s %s: %d\n", when, name, best.Nanoseconds())
		}
	}
}

// TestCostInPause prints what the filter adds to each call of a pause (docs/evidence/operations.md). It fails if the
// calls of a pause cost half as much again.
func TestCostInPause(t *testing.T) {
	best := map[string]int{}
	for range 5 { // whatever else runs on this CPU may slow down all calls of one child behind the guard
		for what, text := range runChild(t, "cost") {
			ns, err := strconv.Atoi(text)
			if err != nil {
				t.Fatalf("%s: %q", what, text)
			}
			if known, ok := best[what]; !ok || ns < known {
				best[what] = ns
			}
		}
	}
	all, added := 0, 0
	// The calls that package sampler makes between stop and release, with one look in vain.
	for call, times := range map[string]int{"clock_gettime": 4, "waitid": 2, "ptrace": 3, "process_vm_readv": 1} {
		before, after := best["before "+call], best["after "+call]
		if before == 0 || after == 0 {
			t.Fatal(best)
		}
		t.Logf("%s: %d ns, behind the guard %d ns", call, before, after)
		all += times * before
		added += times * (after - before)
	}
	t.Logf("a pause: %d ns more", added)
	if 2*added > all {
		t.Errorf("the calls of a pause took %d ns, and take %d more", all, added)
	}
}
