//go:build linux

package ptrace

import (
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A releaser lets threads go that this OS thread does not let go itself, because Go's scheduler has it wait.
//
// Go takes a goroutine that has run for 10 ms off its OS thread, also where both are locked to each other. An ordinary
// OS thread of goprof's hands it back (runtime, stoplockedm, startlockedm). On a busy machine that one may have no CPU
// for hundreds of milliseconds. A thread whose stop comes meanwhile would stand still for as long. No other OS thread
// can let it go: ptrace binds a tracee to the one that has seized it.
//
// But the kernel calls a signal handler on an OS thread whatever Go thinks of it. So while stops are pending, a timer
// of the kernel sends this OS thread a signal each releaseEvery. The handler is not Go's but ours (errand.Handler). It
// detaches from all threads that it has found stopped twice, if Collect was not called in between.

// releaseEvery is how often the handler looks. A thread is let go after at most twice that time.
const releaseEvery = int64(10_000_000)

// mostReleased bounds the threads that the handler has let go and that Collect has not found yet.
const mostReleased = MaxPending

// releaser belongs to one OS thread. Its signal handler shares it with that OS thread alone, so the two are never at
// work at once, and nothing needs to be atomic.
type releaser struct {
	owner int    // the OS thread; 0: none
	timer uint32 // the kernel's number of it; noTimer: there is none
	on    bool   // the timer sends signals
	busy  bool   // a thread is being stopped, looked at and let go: the handler leaves everything alone

	seizing   *Tracer             // that waits for a seize (seize.go)
	collected int64               // when Collect was last called
	clear     int64               // when the handler last found no stopped thread
	found     int64               // when it first found one after that; 0: it has not
	released  [mostReleased]int32 // threads that the handler has let go, and that took has not found yet; 0: none
	letGo     [mostReleased]span

	ts   unix.Timespec
	info siginfo
}

// span is for how long a thread stood still at most.
type span struct{ from, to int64 }

const noTimer = ^uint32(0)

// releasers are all that there ever were. The kernel may send a last signal after a timer was deleted, and the signal
// has the address of a releaser.
var releasers struct {
	sync.Mutex
	list []*releaser
}

// newReleaser makes a releaser for this OS thread. Where that is not possible, the releaser does nothing.
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

// end ends the releaser. The next OS thread may have it.
func (r *releaser) end() {
	if r.timer != noTimer {
		syscall.RawSyscall(unix.SYS_TIMER_DELETE, uintptr(r.timer), 0, 0)
	}
	releasers.Lock()
	r.owner = 0
	releasers.Unlock()
}

// watch has the handler look after this OS thread's tracees, until there are none. A stop is about to come, or has.
//
//go:nosplit
func (r *releaser) watch() {
	if !r.on && r.timer != noTimer {
		r.clear, r.found = Monotonic(), 0
		r.set(releaseEvery)
	}
}

// set sets the timer. 0: no more signals.
//
//go:nosplit
func (r *releaser) set(every int64) {
	r.on = every > 0                                        // before the call: the handler may be called after it, and turn the timer off
	times := [2]unix.Timespec{{Nsec: every}, {Nsec: every}} // the interval, the first time
	syscall.RawSyscall6(unix.SYS_TIMER_SETTIME, uintptr(r.timer), 0, uintptr(unsafe.Pointer(&times)), 0, 0, 0)
}

// boundSignalCame is the handler of boundSignal. Where a herald has sent it, that it ends a call is all.
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
	if r := sent.by; r.owner == int(tid) { // else the timer was another OS thread's, and is deleted
		r.look()
	}
}

// look lets threads go that stand still for too long.
//
//go:nosplit
func (r *releaser) look() {
	if t := r.seizing; t != nil {
		t.reapPending()
	}
	if r.busy {
		return
	}
	now := rawMonotonic(&r.ts)
	switch e := r.nextStopped(); {
	case e != 0 && r.seizing == nil: // there are no tracees
		r.set(0)
	case e != 0 || r.info.pid == 0:
		r.clear, r.found = now, 0
	case r.found == 0 || r.collected >= r.found:
		r.found = now
	default:
		r.releaseAll(now)
	}
}

// nextStopped asks for any tracee of this OS thread that has stopped, and consumes nothing.
//
//go:nosplit
func (r *releaser) nextStopped() syscall.Errno {
	r.info.pid, r.info.code = 0, 0
	_, _, e := syscall.RawSyscall6(unix.SYS_WAITID, pAll, 0, uintptr(unsafe.Pointer(&r.info)),
		unix.WSTOPPED|unix.WNOHANG|unix.WNOWAIT|unix.WALL|unix.WNOTHREAD, 0, 0)
	return e
}

// releaseAll lets all threads go that have stopped. A thread that was killed since then is not noted: it is Collect's.
//
//go:nosplit
func (r *releaser) releaseAll(now int64) {
	for range mostReleased {
		_, sig := r.info.told()
		tid := uintptr(r.info.pid)
		if _, _, e := syscall.RawSyscall6(unix.SYS_PTRACE, unix.PTRACE_DETACH, tid, 0, sig, 0, 0); e == 0 {
			at := 0
			for at < mostReleased-1 && r.released[at] != 0 {
				at++
			}
			r.letGo[at] = span{r.clear, rawMonotonic(&r.ts)}
			r.released[at] = int32(tid)
		}
		if r.nextStopped() != 0 || r.info.pid == 0 {
			break
		}
	}
	r.clear, r.found = now, 0
}

// took reports whether the handler has let that thread go, and when. The handler may be called in between.
func (r *releaser) took(tid int) (held span, ok bool) {
	for i := range r.released {
		if r.released[i] == int32(tid) {
			held = r.letGo[i]
			r.released[i] = 0
			return held, true
		}
	}
	return span{}, false
}

// missedLook reports whether the handler has let that thread go. missed is when this OS thread last saw that the thread
// had not stopped.
func (t *Tracer) missedLook(tid int, missed int64) bool {
	held, ok := t.releaser.took(tid)
	if ok {
		t.noteHold(held.to - max(held.from, missed))
	}
	return ok
}

// openReleaser is the releaser of this OS thread.
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

// beginPause has the releaser leave alone what this OS thread itself is about to do.
//
//go:nosplit
func (t *Tracer) beginPause() { t.releaser.busy = true }

// endPause ends a pause and unblocks signals. The releaser looks after a thread that has not stopped yet.
//
//go:nosplit
func (t *Tracer) endPause(s state) {
	if s == running {
		t.releaser.watch()
	}
	t.releaser.busy = false
	setSignalMask(&t.oldMask, nil)
}
