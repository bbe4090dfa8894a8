//go:build linux

package ptrace

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Raw system calls for use inside the pause. All are nosplit: a function that may grow its stack has a point at which
// Go's scheduler can take the thread's CPU away. Their pointers lead to fields of a Tracer, which is on the heap and
// does not move. syscall.RawSyscall6 keeps Go's processor, but nothing here blocks for long. A read of the target's
// memory might block: a Runner makes such reads (reader.go).

// What became of a child, by waitid(2): siginfo's si_code (include/uapi/asm-generic/siginfo.h).
const (
	cldExited  = 1
	cldKilled  = 2
	cldDumped  = 3
	cldTrapped = 4
	cldStopped = 5
)

const pPID = 1 // waitid(2): P_PID

// ntARMPACMask is the arm64 register set of pointer authentication masks (include/uapi/linux/elf.h). Only a CPU with
// arch.Facts.Signs has it.
const ntARMPACMask = 0x406

// siginfo is the part of siginfo_t that waitid fills in, on 64-bit machines.
type siginfo struct {
	signo, errno, code, _ int32
	pid                   int32
	uid                   uint32
	status                int32
	_                     [25]int32 // to 128 bytes
}

//go:nosplit
func ptrace(request, tid, addr, data uintptr) syscall.Errno {
	_, _, e := syscall.RawSyscall6(unix.SYS_PTRACE, request, tid, addr, data, 0, 0)
	return e
}

// waitPeek asks whether a tracee has stopped or ended, without blocking and without consuming the answer. An answer
// that was not consumed is not lost when goprof dies.
//
//go:nosplit
func waitPeek(tid int, info *siginfo) syscall.Errno {
	info.pid, info.code = 0, 0
	_, _, e := syscall.RawSyscall6(unix.SYS_WAITID, pPID, uintptr(tid), uintptr(unsafe.Pointer(info)),
		unix.WEXITED|unix.WSTOPPED|unix.WNOHANG|unix.WNOWAIT|unix.WALL|unix.WNOTHREAD, 0, 0)
	return e
}

// waitReap consumes the end of a tracee of this OS thread. A tracee that is not reaped stays a zombie, and blocks an
// exec or the end of its process. waitReap peeks first: even if waitid is asked only for ends, it may return a stop
// (kernel/exit.c, wait_task_stopped). A stop that waitid has consumed is not reported again, and the thread would stay
// stopped until goprof ends.
//
//go:nosplit
func waitReap(tid int) {
	var info siginfo
	const flags = unix.WEXITED | unix.WNOHANG | unix.WALL | unix.WNOTHREAD
	_, _, e := syscall.RawSyscall6(unix.SYS_WAITID, pPID, uintptr(tid), uintptr(unsafe.Pointer(&info)), flags|unix.WNOWAIT,
		0, 0)
	if e != 0 || info.pid == 0 || info.code == cldTrapped || info.code == cldStopped {
		return
	}
	syscall.RawSyscall6(unix.SYS_WAITID, pPID, uintptr(tid), 0, flags, 0, 0)
}

// Monotonic returns CLOCK_MONOTONIC. Go reads this clock without a system call. On an OS thread that Go does not know,
// use rawMonotonic instead.
//
//go:nosplit
func Monotonic() int64 { return nanotime() }

//go:linkname nanotime runtime.nanotime
//go:noescape
func nanotime() int64

// rawMonotonic is Monotonic by a system call.
//
//go:nosplit
func rawMonotonic(ts *unix.Timespec) int64 {
	syscall.RawSyscall(unix.SYS_CLOCK_GETTIME, unix.CLOCK_MONOTONIC, uintptr(unsafe.Pointer(ts)), 0)
	return ts.Sec*1e9 + ts.Nsec
}

// SleepUntil sleeps until a moment of CLOCK_MONOTONIC, or until the next signal. Unlike with unix.ClockNanosleep, Go's
// scheduler does not know of the sleep. If it did, the garbage collector would scan this thread's stack during the
// sleep. The thread might wake up on the collector's CPU, with real-time priority. Then it would spin until the
// collector finishes (runtime, casgstatus), while the collector waits for the CPU. That would last for a second, until
// the kernel throttles the thread, and threads of the target would stay stopped meanwhile. Because the scheduler does
// not know of the sleep, the collector sends a signal instead, which ends the sleep.
func SleepUntil(ts *unix.Timespec) {
	syscall.RawSyscall6(unix.SYS_CLOCK_NANOSLEEP, unix.CLOCK_MONOTONIC, unix.TIMER_ABSTIME,
		uintptr(unsafe.Pointer(ts)), 0, 0, 0)
}

//go:nosplit
func setSignalMask(mask, old *uint64) {
	syscall.RawSyscall6(unix.SYS_RT_SIGPROCMASK, uintptr(unix.SIG_SETMASK),
		uintptr(unsafe.Pointer(mask)), uintptr(unsafe.Pointer(old)), 8, 0, 0)
}

// CurrentCPU returns the CPU on which this OS thread runs, -1 if not known.
//
//go:nosplit
func CurrentCPU() int {
	var cpu uint32
	if _, _, e := syscall.RawSyscall(unix.SYS_GETCPU, uintptr(unsafe.Pointer(&cpu)), 0, 0); e != 0 {
		return -1
	}
	return int(cpu)
}

// ignoreChildStops asks the kernel not to send SIGCHLD for each stop of a tracee (SA_NOCLDSTOP). Go's handler stays:
// os/exec does not need the handler, but a user of signal.Notify does. The kernel still sends SIGCHLD for ends.
func ignoreChildStops() {
	const saNoCldStop = 1
	var act sigaction
	if getSigaction(unix.SIGCHLD, &act) && act.flags&saNoCldStop == 0 {
		act.flags |= saNoCldStop
		setSigaction(unix.SIGCHLD, &act)
	}
}

// sigaction is the kernel's struct sigaction (include/linux/signal_types.h). goprof only saves, empties and restores a
// sigaction, so the layout behind the flags does not matter.
type sigaction struct {
	handler, flags, restorer uintptr
	mask                     uint64
}

func getSigaction(sig syscall.Signal, act *sigaction) bool {
	_, _, e := syscall.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(sig), 0, uintptr(unsafe.Pointer(act)), 8, 0, 0)
	return e == 0
}

func setSigaction(sig syscall.Signal, act *sigaction) {
	syscall.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(sig), uintptr(unsafe.Pointer(act)), 0, 8, 0, 0)
}
