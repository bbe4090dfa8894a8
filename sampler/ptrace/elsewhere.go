//go:build linux

package ptrace

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The sampling thread must not use the CPU of the thread that it stops. To stop, that thread needs its CPU for a
// moment, and the sampling thread would keep the CPU from it.
//
// A sampling thread with real-time priority always wakes up on the CPU on which it went to sleep, even if other CPUs
// are idle (kernel/sched/rt.c, select_task_rq_rt). Without a move it would share that CPU with a busy thread until the
// busy thread goes elsewhere. Each stop of the busy thread would begin only when the sampling thread goes to sleep, and
// would last until the sampling thread wakes up. So the sampling thread moves to another CPU first.
//
// The sampling thread stays (Tracer.Stay) if all CPUs are busy with threads to look at: each move takes the CPU of
// another thread, and costs more than it saves (docs/evidence/performance.md).

// mayMove reports whether this OS thread may move to another CPU. It may not if Stay is set. It may not either while
// stops are pending: a thread with a higher real-time priority may use the other CPU for long, and the threads that
// stop meanwhile would have to wait.
func (t *Tracer) mayMove() bool { return !t.Stay && len(t.pending) == 0 }

// cpuMask has room for the CPUs of any machine that Linux is built for (NR_CPUS is 8,192 at most).
type cpuMask [8192 / 64]uint64

// elsewhere moves this OS thread away from cpu if mayMove is set, and reports whether the OS thread is on another CPU
// now. It returns false for -1 (not known), and if there is no other CPU.
func (m *cpuMask) elsewhere(cpu int, mayMove bool) bool {
	return cpu >= 0 && (cpu != CurrentCPU() || mayMove && m.leave(cpu))
}

// leave moves this OS thread to another of its CPUs, and reports whether there was one. Then it allows all of these
// CPUs again.
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

// get reads on which CPUs an OS thread may run (tid 0: this one), and returns the size of the kernel's mask.
func (m *cpuMask) get(tid int) (size uintptr, ok bool) {
	size, _, e := syscall.RawSyscall(unix.SYS_SCHED_GETAFFINITY, uintptr(tid), unsafe.Sizeof(*m),
		uintptr(unsafe.Pointer(m)))
	return size, e == 0
}

// set sets on which CPUs an OS thread may run. It returns false if no CPU is left.
func (m *cpuMask) set(tid int, size uintptr) bool {
	_, _, e := syscall.RawSyscall(unix.SYS_SCHED_SETAFFINITY, uintptr(tid), size, uintptr(unsafe.Pointer(m)))
	return e == 0
}

// setOnly binds an OS thread to one CPU. It returns false if that is not possible. The mask must be empty before the
// call, and is empty after it.
func (m *cpuMask) setOnly(tid, cpu int) bool {
	if cpu/64 >= len(m) {
		return false
	}
	m[cpu/64] = 1 << (cpu % 64)
	ok := m.set(tid, unsafe.Sizeof(*m))
	m[cpu/64] = 0
	return ok
}
