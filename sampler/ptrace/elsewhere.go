//go:build linux

package ptrace

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A thread cannot stop before we leave its CPU. With real-time priority we wake up where we
// went to sleep, whoever runs there and however idle the others are (kernel/sched/rt.c,
// select_task_rq_rt), and would find ourselves on the busiest thread's CPU for as long as it stays there:
// each of its stops would come while we sleep, and last until we wake up again. So we move first.
//
// Not where all CPUs are busy with threads that are looked at: each move takes another one's CPU, and costs
// more than it saves (docs/performance.md): Tracer.Stay.

// cpuMask has room for the CPUs of any machine that Linux is built for (NR_CPUS is 8,192 at most).
type cpuMask [8192 / 64]uint64

// elsewhere makes sure, if it may, that this OS thread is not on that CPU, and reports whether it could: -1 is
// an unknown one, and there may be no other.
func (m *cpuMask) elsewhere(cpu int, mayMove bool) bool {
	return cpu >= 0 && (cpu != CurrentCPU() || mayMove && m.leave(cpu))
}

// leave moves to another of the CPUs that we may use. Then all of them are allowed again.
func (m *cpuMask) leave(cpu int) bool {
	size, ok := m.get(0)
	if !ok || cpu/64 >= len(m) {
		return false
	}
	bit := uint64(1) << (cpu % 64)
	m[cpu/64] &^= bit
	moved := m.set(0, size)
	m[cpu/64] |= bit
	if moved {
		m.set(0, size)
	}
	return moved
}

// get reads where an OS thread may run, 0 being our own.
func (m *cpuMask) get(tid int) (size uintptr, ok bool) {
	size, _, e := syscall.RawSyscall(unix.SYS_SCHED_GETAFFINITY, uintptr(tid), unsafe.Sizeof(*m),
		uintptr(unsafe.Pointer(m)))
	return size, e == 0
}

// set fails if no CPU is left.
func (m *cpuMask) set(tid int, size uintptr) bool {
	_, _, e := syscall.RawSyscall(unix.SYS_SCHED_SETAFFINITY, uintptr(tid), size, uintptr(unsafe.Pointer(m)))
	return e == 0
}

// setOnly lets an OS thread run on that CPU only. The mask is empty before, and is again.
func (m *cpuMask) setOnly(tid, cpu int) bool {
	if cpu/64 >= len(m) {
		return false
	}
	m[cpu/64] = 1 << (cpu % 64)
	ok := m.set(tid, unsafe.Sizeof(*m))
	m[cpu/64] = 0
	return ok
}
