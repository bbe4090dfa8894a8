//go:build linux

package perf

import (
	"bytes"
	"encoding/binary"

	"goprof/arch"
	"goprof/process"
	"goprof/process/procfs"
)

// Why samples never show the beginning of short sleeps in a virtual machine.
//
// The kernel sets a timer for a thread that sleeps for a time. If this timer is due before all others of its CPU, the
// kernel must also program the CPU's clock. In a virtual machine of x86-64, that means leaving the virtual machine,
// which takes long. A sample should sometimes fall into this time. But if the timer of a sample is due before the end
// of the sleep, the kernel does not program the clock (kernel/time/hrtimer.c, hrtimer_reprogram). So no sample ever
// falls into that time, and the profile lacks it. docs/evidence/visits.md has the figures. No other timer would do
// better, so the account reports the lack.

// soon bounds the time to the end of a sleep whose timer may be the next one of its CPU. The kernel's tick comes every
// 1 to 10 ms.
const soon = int64(4e6)

// SleepsShortly reports whether a thread that was seen at a moment (when) was in a sleep that ends at that moment, or
// soon after. The moment is on the process's own clock, which differs in a time namespace. The fourth argument of
// futex(2) is the address of the sleep's end, a struct timespec of CLOCK_MONOTONIC on the thread's stack (os_posix.cpp,
// Parker::park; glibc, __futex_abstimed_wait_common).
func SleepsShortly(cpu *arch.CPU, snap *process.Snapshot, when int64) bool {
	const timespec = 16
	if snap.Unknown>>cpu.FourthArg&1 != 0 {
		return false
	}
	at, have := snap.Regs[cpu.FourthArg]-snap.SP, uint64(len(snap.Stack))
	if at > have || have-at < timespec {
		return false
	}
	sec, nsec := binary.LittleEndian.Uint64(snap.Stack[at:]), binary.LittleEndian.Uint64(snap.Stack[at+8:])
	if sec > uint64(when/1e9)+1 || nsec >= 1e9 {
		return false
	}
	left := int64(sec*1e9+nsec) - when
	return -soon < left && left < soon
}

// SetsClockDearly reports whether this is a virtual machine in which programming a CPU's clock takes long.
func SetsClockDearly(cpu *arch.CPU) bool {
	flag := cpu.DearClock
	info, _ := procfs.Read("/proc/cpuinfo", 8<<10)
	return flag != "" && bytes.Contains(info, []byte(" "+flag))
}
