//go:build linux

package ptrace

import (
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// When goprof itself is stopped (Ctrl-Z), a thread that goprof holds, or has told to stop, would stay stopped as long
// as goprof. So code that is about to stop goprof calls Suspend first. Suspend ends all OS threads that may hold
// threads of the target, so the kernel releases these threads. Later goprof starts new OS threads.

// Code that may hold threads has locked hold for reading.
var hold struct {
	sync.RWMutex
	wanted atomic.Int32
}

// Suspend waits until goprof holds no thread of any process, calls stop, and lets sampling continue when stop has
// returned. If an engine runs, the wait is short: until the engine's next wake-up, and 0.1 s for late stops, or up to
// endWait if threads have no CPU to stop on. If a dump runs, Suspend waits until the dump is done.
func Suspend(stop func()) {
	hold.wanted.Add(1)
	hold.Lock()
	hold.wanted.Add(-1)
	defer hold.Unlock()
	stop()
}

// SuspendWanted reports whether a goroutine waits in Suspend. Then code that may hold threads must end its OS thread.
func SuspendWanted() bool { return hold.wanted.Load() > 0 }

// OnOwnThread runs f on an OS thread that ends afterwards, and waits for its end. A Tracer runs in this way: when the
// OS thread ends, the kernel releases all threads that it has seized (kernel/ptrace.c, exit_ptrace). Go never ends the
// main thread. So if f would run there, OnOwnThread keeps the main thread busy, and another OS thread runs f.
func OnOwnThread(f func()) {
	hold.RLock()
	defer hold.RUnlock()
	countHolders(1)
	defer countHolders(-1)
	OnThreadHoldingNobody(f)
}

// holders counts the OS threads that may hold threads.
var holders struct {
	sync.Mutex
	n atomic.Int32 // changes under the lock
}

// countHolders adds 1 or -1 to holders. It informs the watchdog before the first holder begins.
func countHolders(more int) {
	holders.Lock()
	defer holders.Unlock()
	now := holders.n.Add(int32(more))
	if (now-int32(more) > 0) != (now > 0) {
		tellWhetherHolding()
	}
}

// tellHolders informs a new watchdog whether there are holders.
func tellHolders() {
	holders.Lock()
	defer holders.Unlock()
	tellWhetherHolding()
}

func tellWhetherHolding() {
	if holders.n.Load() > 0 {
		tellDog(mayHold)
	} else {
		tellDog(holdsNobody)
	}
}

// OnThreadHoldingNobody is OnOwnThread for an f that never holds a thread: Suspend does not wait for f.
func OnThreadHoldingNobody(f func()) {
	ended := make(chan int, 1)
	go func() {
		runtime.LockOSThread()
		tid := 0
		defer func() { ended <- tid }()
		if unix.Gettid() == unix.Getpid() {
			OnThreadHoldingNobody(f)
			runtime.UnlockOSThread()
			return
		}
		tid = unix.Gettid()
		unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0) // ns: sleeps end on time
		preemptAtOnce()
		countSleepers(1)
		defer countSleepers(-1)
		f()
	}()
	awaitEnd(<-ended)
}

// awaitEnd waits for the end of an OS thread, because only then the kernel releases its tracees.
func awaitEnd(tid int) {
	if tid == 0 {
		return
	}
	task := fmt.Sprintf("/proc/self/task/%d", tid)
	for wait := 10 * time.Microsecond; wait < time.Second && unix.Access(task, unix.F_OK) == nil; wait *= 2 {
		time.Sleep(wait)
	}
}

// StopAfterSuspend delays a stop of this process until it holds no thread of a target (Suspend). It does so for Ctrl-Z,
// and for writes to a terminal from the background if these stop a process. A call of end undoes StopAfterSuspend.
func StopAfterSuspend() (end func()) {
	return StopAround(func(_ unix.Signal, stop func()) { stop() })
}

// StopAround is StopAfterSuspend for a program that must do something before and after the stop. around is called with
// the signal and with a function stop. stop stops this process, and returns when the process goes on.
func StopAround(around func(sig unix.Signal, stop func())) (end func()) {
	asked := make(chan os.Signal, 1)
	for _, sig := range []os.Signal{unix.SIGTSTP, unix.SIGTTOU} {
		if !signal.Ignored(sig) {
			signal.Notify(asked, sig)
		}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for s := range asked {
			sig := s.(unix.Signal)
			around(sig, func() { Suspend(func() { stopSelf(sig) }) })
		}
	}()
	return func() {
		signal.Stop(asked)
		close(asked)
		<-done
	}
}

// stopSelf stops this process as if the signal had not been caught, and returns when it goes on. SIGSTOP is not right:
// unlike the real signal, it also stops a process that no other process would continue (an orphaned process group,
// kernel/signal.c, get_signal). signal.Reset is not right either, because it leaves Go's handler in place.
func stopSelf(sig unix.Signal) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var old, byDefault sigaction
	if !getSigaction(sig, &old) {
		return
	}
	tellDog(stopsNow)
	defer tellDog(goesOn)
	setSigaction(sig, &byDefault)
	unix.Tgkill(unix.Getpid(), unix.Gettid(), sig) // to this OS thread: the process has stopped before the call returns
	setSigaction(sig, &old)
}
