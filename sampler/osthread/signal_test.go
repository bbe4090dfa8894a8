//go:build linux

package osthread

import (
	"os"
	"runtime"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// handled is what countSignal has seen.
var handled struct{ count, signal, tid atomic.Int64 }

// countSignal is the handler of the test.
//
//go:nosplit
func countSignal(info unsafe.Pointer) {
	tid, _, _ := syscall.RawSyscall(unix.SYS_GETTID, 0, 0, 0)
	handled.signal.Store(int64(*(*int32)(info)))
	handled.tid.Store(int64(tid))
	handled.count.Add(1)
}

// TestHandler: a function of Go's is called on an OS thread while its goroutine sleeps as Go knows it, and while the
// goroutine computes and Go collects garbage. The goroutine goes on where it was.
func TestHandler(t *testing.T) {
	const signal = unix.Signal(61)
	handler := Handler(countSignal)
	if handler == 0 {
		if !raceEnabled {
			t.Fatal("there is no handler on this CPU")
		}
		return
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var act, before [4]uintptr // struct sigaction (include/linux/signal_types.h); the handler is the first word
	sigaction := func(to, old *[4]uintptr) {
		if _, _, e := syscall.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(signal), uintptr(unsafe.Pointer(to)),
			uintptr(unsafe.Pointer(old)), 8, 0, 0); e != 0 {
			t.Fatal(e)
		}
	}
	sigaction(nil, &act)
	before, act[0] = act, handler
	sigaction(&act, nil)
	defer sigaction(&before, nil)
	tid, sent := unix.Gettid(), int64(200)
	var sending atomic.Bool
	sending.Store(true)
	go func() {
		defer sending.Store(false)
		for n := range sent {
			unix.Tgkill(os.Getpid(), tid, signal)
			for handled.count.Load() <= n {
				time.Sleep(time.Millisecond)
			}
			runtime.GC()
		}
	}()
	sum, rounds := 0.0, 0
	for ; sending.Load(); rounds++ {
		for i := range 1000 {
			sum += float64(i)
		}
		time.Sleep(time.Microsecond)
	}
	if sum != float64(rounds)*999*500 {
		t.Errorf("%v in %d rounds", sum, rounds)
	}
	if s, on := handled.signal.Load(), handled.tid.Load(); s != int64(signal) || on != int64(tid) {
		t.Errorf("signal %d on OS thread %d, want %d on %d", s, on, signal, tid)
	}
}
