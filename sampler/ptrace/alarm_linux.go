//go:build linux

package ptrace

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Alarm is a timer that sends a signal to this OS thread alone.
type Alarm struct {
	id    int32
	made  bool
	Works bool // its signal ends a system call
}

// boundSignal ends a blocking waitid(2), which has no time limit of its own. ppoll and signalfd cannot stand in for
// it: nothing but waitid tells of the stop of a tracee without a signal to the whole process.
//
// It is a real-time signal that nothing else uses: libc's and Go's own begin at 32. Go has a handler for each signal,
// which drops the signals that nobody asked for (runtime, sighandler).
const boundSignal = 62

// again is how soon boundSignal is sent once more: the first one may come just before the call that it is to end.
const again = 200_000 // ns

// sigevent is struct sigevent with SIGEV_THREAD_ID (include/uapi/asm-generic/siginfo.h).
type sigevent struct {
	value  uint64
	signo  int32
	notify int32
	tid    int32
	_      [44]byte
}

// NewAlarm makes a timer of this OS thread that ends what LookHeld waits for. It ends with Close.
func NewAlarm() (a Alarm) {
	const threadID = 4 // SIGEV_THREAD_ID
	ev := sigevent{signo: boundSignal, notify: threadID, tid: int32(unix.Gettid())}
	_, _, e := syscall.RawSyscall(unix.SYS_TIMER_CREATE, unix.CLOCK_MONOTONIC, uintptr(unsafe.Pointer(&ev)),
		uintptr(unsafe.Pointer(&a.id)))
	a.made = e == 0
	a.Works = a.made && endsCalls(boundSignal)
	return a
}

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

// Set has the signal sent at a moment of CLOCK_MONOTONIC, and again and again after it.
func (a *Alarm) Set(at int64) {
	spec := unix.ItimerSpec{Value: unix.NsecToTimespec(at), Interval: unix.NsecToTimespec(again)}
	syscall.RawSyscall6(unix.SYS_TIMER_SETTIME, uintptr(a.id), unix.TIMER_ABSTIME, uintptr(unsafe.Pointer(&spec)), 0, 0, 0)
}

// Close ends the timer. It may be called again.
func (a *Alarm) Close() {
	if a.made {
		syscall.RawSyscall(unix.SYS_TIMER_DELETE, uintptr(a.id), 0, 0)
		a.made, a.Works = false, false
	}
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
