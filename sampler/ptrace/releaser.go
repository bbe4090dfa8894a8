//go:build linux

package ptrace

import (
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A releaser releases stopped threads while Go's scheduler keeps the sampling thread waiting.
//
// Go takes a goroutine that has run for 10 ms off its OS thread, even if both are locked to each other. Another OS
// thread of goprof's, of ordinary priority, hands it back (runtime, stoplockedm, startlockedm). On a busy machine that
// OS thread may have no CPU for hundreds of milliseconds. A thread of the target that stops meanwhile would stay
// stopped for as long. No other OS thread can release it: ptrace binds a tracee to the OS thread that has seized it.
//
// But the kernel calls a signal handler on an OS thread whatever Go's scheduler does. So while stops are pending, a
// timer of the kernel sends this OS thread a signal each releaseEvery. The handler is goprof's, not Go's
// (osthread.Handler). It detaches from a thread that it finds stopped at two signals.

const (
	// releaseEvery is how often the handler looks. It releases a thread after at most twice that time.
	releaseEvery = int64(10_000_000)
	// standsFor is how long a thread must be known to be stopped before the handler releases it. Two signals may come
	// close together, if one is late.
	standsFor = releaseEvery / 2
	// mostWatched bounds the threads that are watched at once. Many Tracers may share an OS thread (borrow.go).
	mostWatched = 4 * MaxPending
)

// releaser belongs to one OS thread. Its signal handler runs on the same OS thread, so the two never run at once, and
// nothing needs to be atomic.
type releaser struct {
	owner   int     // the OS thread's number; 0: none
	timer   uint32  // the kernel's number of the timer, or noTimer
	on      bool    // the timer sends signals
	busy    bool    // this OS thread stops and releases a thread: the handler does nothing
	seizing *Tracer // the Tracer that waits in PTRACE_SEIZE (seize.go)
	watched [mostWatched]lateStop
	// unwatched is for threads for which watched has no room.
	unwatched lateStop
	ts        unix.Timespec
	info      siginfo
}

// lateStop is a thread that was told to stop but has not stopped yet.
type lateStop struct {
	tid   int   // 0: none. Written last
	clear int64 // when the thread was last seen not to have stopped
	found int64 // when the thread was first seen stopped; 0: never
	letGo int64 // when the handler released the thread; 0: it has not
}

const noTimer = ^uint32(0)

// releasers are all releasers ever made. The kernel may send a last signal after a timer was deleted, and the signal
// has the address of a releaser.
var releasers struct {
	sync.Mutex
	list []*releaser
}

// newReleaser makes a releaser for this OS thread. If that is not possible, the releaser does nothing.
func newReleaser(owner int) *releaser {
	releasers.Lock()
	defer releasers.Unlock()
	var r *releaser
	for _, old := range releasers.list {
		if old.owner == 0 {
			r = old
		}
	}
	if r == nil {
		r = new(releaser)
		releasers.list = append(releasers.list, r)
	}
	*r = releaser{owner: owner, timer: noTimer}
	if handlesBoundSignal() {
		// struct sigevent (include/uapi/asm-generic/siginfo.h).
		event := struct {
			value               uintptr
			signal, notify, tid int32
			_                   [11]int32
		}{uintptr(unsafe.Pointer(r)), boundSignal, sigevThreadID, int32(owner), [11]int32{}}
		id := noTimer
		_, _, e := syscall.RawSyscall(unix.SYS_TIMER_CREATE, unix.CLOCK_MONOTONIC, uintptr(unsafe.Pointer(&event)),
			uintptr(unsafe.Pointer(&id)))
		if e == 0 {
			r.timer = id
		}
	}
	return r
}

const sigevThreadID = 4 // SIGEV_THREAD_ID (include/uapi/asm-generic/siginfo.h)

// end ends the releaser. The next OS thread may use it again.
func (r *releaser) end() {
	if r.timer != noTimer {
		syscall.RawSyscall(unix.SYS_TIMER_DELETE, uintptr(r.timer), 0, 0)
	}
	releasers.Lock()
	r.owner = 0
	releasers.Unlock()
}

// watch makes the handler check a thread until the caller calls done of the result. missed is the last time at which
// the thread had not stopped yet. If too many threads are watched, the handler does not check this one.
//
//go:nosplit
func (r *releaser) watch(tid int, missed int64) *lateStop {
	var w *lateStop
	for i := range r.watched {
		if at := &r.watched[i]; at.tid == tid {
			if at.letGo != 0 { // the caller has given up this earlier stop
				at.clear, at.found, at.letGo = missed, 0, 0
			}
			return at
		}
		if w == nil && r.watched[i].tid == 0 {
			w = &r.watched[i]
		}
	}
	if w == nil {
		return &r.unwatched
	}
	w.clear, w.found, w.letGo = missed, 0, 0
	w.tid = tid
	if !r.on && r.timer != noTimer {
		r.set(releaseEvery)
	}
	return w
}

// done ends the watch.
//
//go:nosplit
func (w *lateStop) done() { w.tid = 0 }

// set sets the interval of the timer's signals. 0: no more signals.
//
//go:nosplit
func (r *releaser) set(every int64) {
	// Before the call, because the handler may run right after the call and turn the timer off.
	r.on = every > 0
	times := [2]unix.Timespec{{Nsec: every}, {Nsec: every}} // the interval, the first time
	syscall.RawSyscall6(unix.SYS_TIMER_SETTIME, uintptr(r.timer), 0, uintptr(unsafe.Pointer(&times)), 0, 0, 0)
}

// boundSignalCame is the handler of boundSignal. If a preempter has sent the signal, the handler has nothing to do: the
// signal itself ends a system call.
//
//go:nosplit
func boundSignalCame(info unsafe.Pointer) {
	const siTimer = -2 // SI_TIMER
	sent := (*struct {
		signal, errno, code, _, timer, overrun int32
		by                                     *releaser
	})(info)
	if sent.code != siTimer {
		return
	}
	tid, _, _ := syscall.RawSyscall(unix.SYS_GETTID, 0, 0, 0)
	if r := sent.by; r.owner == int(tid) { // otherwise the timer was another OS thread's, and is deleted
		r.look()
	}
}

// look releases threads that have been stopped for too long.
//
//go:nosplit
func (r *releaser) look() {
	if t := r.seizing; t != nil {
		t.reapEnded()
	}
	if r.busy {
		return
	}
	some := false
	for i := range r.watched {
		if w := &r.watched[i]; w.tid != 0 && w.letGo == 0 {
			some = true
			r.lookAfter(w)
		}
	}
	if !some && r.seizing == nil {
		r.set(0)
	}
}

// lookAfter detaches from a thread that has been stopped for standsFor. It leaves a killed thread to Collect.
//
//go:nosplit
func (r *releaser) lookAfter(w *lateStop) {
	now := rawMonotonic(&r.ts)
	if waitPeek(w.tid, &r.info) != 0 {
		return
	}
	switch s, sig := r.info.decode(); {
	case s == running:
		w.clear, w.found = now, 0
	case s == stopped && w.found == 0:
		w.found = now
	case s == stopped && now-w.found >= standsFor:
		if ptrace(unix.PTRACE_DETACH, uintptr(w.tid), 0, sig) == 0 {
			w.letGo = rawMonotonic(&r.ts)
		}
	}
}

func (t *Tracer) openReleaser() *releaser {
	if t.releaser == nil || t.releaser.owner != t.owner {
		t.closeReleaser()
		t.releaser = newReleaser(t.owner)
	}
	return t.releaser
}

func (t *Tracer) closeReleaser() {
	if t.releaser != nil {
		t.releaser.end()
		t.releaser = nil
	}
}

// beginPause keeps the handler from releasing threads while this OS thread does so itself.
//
//go:nosplit
func (t *Tracer) beginPause() { t.releaser.busy = true }

// endPause ends a pause and unblocks signals.
//
//go:nosplit
func (t *Tracer) endPause() {
	t.releaser.busy = false
	setSignalMask(&t.oldMask, nil)
}
