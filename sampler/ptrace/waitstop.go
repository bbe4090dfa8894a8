//go:build linux

package ptrace

import (
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"goprof/sampler/osthread"
)

// boundSignal ends a blocking waitid(2), which has no time limit of its own. ppoll and signalfd cannot replace waitid:
// only waitid reports the stop of a tracee without a signal to the whole process.
//
// boundSignal is a real-time signal that nothing else uses: libc and Go use real-time signals from 32 on. goprof has
// its own handler for it.
const boundSignal = 62

// handlesBoundSignal puts goprof's handler in place of Go's, and reports whether it could. With goprof's handler the
// signal also ends system calls. With Go's handler the kernel would restart them. All else is as Go sets it: the
// handler runs on the signal stack, and other signals wait meanwhile.
var handlesBoundSignal = sync.OnceValue(func() bool {
	const saRestart = 0x10000000
	handler := osthread.Handler(boundSignalCame)
	var act sigaction
	if handler == 0 || !getSigaction(boundSignal, &act) || act.handler == 0 {
		return false
	}
	act.handler = handler
	act.flags &^= saRestart
	setSigaction(boundSignal, &act)
	return true
})

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
