//go:build linux

package ptrace

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// boundSignal ends a blocking waitid(2), which has no time limit of its own. ppoll and signalfd cannot stand in for
// it: nothing but waitid tells of the stop of a tracee without a signal to the whole process.
//
// It is a real-time signal that nothing else uses: libc's and Go's own begin at 32. Go has a handler for each signal,
// which drops the signals that nobody asked for (runtime, sighandler).
const boundSignal = 62

// endsCalls makes sure that a signal ends a system call; by default Go has the kernel begin the call anew.
func endsCalls(signal syscall.Signal) bool {
	const saRestart = 0x10000000
	var act sigaction
	if !getSigaction(signal, &act) || act.handler == 0 {
		return false
	}
	if act.flags&saRestart != 0 {
		act.flags &^= saRestart
		setSigaction(signal, &act)
	}
	return true
}

// waitStop blocks until the tracee has stopped or ended, or a signal comes. Like waitPeek, waitStop does not consume
// the answer.
//
//go:nosplit
func waitStop(tid int, info *siginfo) syscall.Errno {
	info.pid, info.code = 0, 0
	_, _, e := syscall.RawSyscall6(unix.SYS_WAITID, pPID, uintptr(tid), uintptr(unsafe.Pointer(info)),
		unix.WEXITED|unix.WSTOPPED|unix.WNOWAIT|unix.WALL|unix.WNOTHREAD, 0, 0)
	return e
}
