//go:build linux

package sampler

import (
	"bytes"
	"encoding/binary"

	"goprof/process"
)

// Sleeps that end soon, in a virtual machine.
//
// A thread that sleeps for a time has a timer set. Where that is due before all others of its CPU, the clock of the CPU
// is set, too, which in a virtual machine of x86-64 means leaving it. While the timer of a sample is due sooner, the
// clock need not be set (kernel/time/hrtimer.c, hrtimer_reprogram): so just where a sample falls it was not, and no
// sample is ever taken where the clock is set. docs/decisions/0004 has the figures. That cannot be mended with timers,
// so it is told.

// soon is until when a sleep ends that may be the next timer of its CPU: the kernel's tick comes every 1 to 10 ms.
const soon = int64(4e6)

// deadlineWithin is how much of a stack's top holds the deadline of libc's wait, as its caller has it.
const deadlineWithin = 1 << 10

// SleepsSoon reports whether a thread that was seen at when is about to sleep, until a moment very soon: the top of its
// stack holds that moment, as a struct timespec of CLOCK_MONOTONIC (os_posix.cpp, to_abstime).
func SleepsSoon(snap *process.Snapshot, when int64) bool {
	top := snap.Stack[:min(len(snap.Stack), deadlineWithin)]
	for ; len(top) >= 16; top = top[8:] {
		sec, nsec := binary.LittleEndian.Uint64(top), binary.LittleEndian.Uint64(top[8:])
		if sec > uint64(when/1e9)+1 || nsec >= 1e9 {
			continue
		}
		if left := int64(sec*1e9+nsec) - when; left > 0 && left < soon {
			return true
		}
	}
	return false
}

// SetsClockDearly reports whether this is a virtual machine in which it is dear to set a CPU's clock. The name is one
// of x86-64's flags: on arm64 a virtual machine sets the clock itself.
func SetsClockDearly() bool {
	var buf [8 << 10]byte
	return bytes.Contains(readSmall("/proc/cpuinfo", buf[:]), []byte(" hypervisor"))
}
