//go:build linux

package ptrace

import (
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"goprof/sampler/osthread"
)

// A preempter is an OS thread that sleeps on its CPU until a visit is due there. Its priority is higher than that of
// the sampling thread, so it takes the CPU from whatever thread runs there. The kernel has noted which thread that was.
// If the thread belongs to a sampled process, the preempter binds the sampling thread to this CPU and wakes it. Binding
// costs little, because the sampling thread sleeps. When the preempter sleeps again, the sampling thread gets the CPU
// before the interrupted thread does (docs/decisions/0019).
//
// So no running thread is moved, the sampling thread needs no timer for each CPU, and a visit that meets no thread
// costs some microseconds.
//
// All functions in this file run on the preempter's OS thread, which Go does not know: see osthread.Thread. The methods
// of atomic types are not marked nosplit. They are inlined. Without inlining (-gcflags=all=-l) they call nothing and
// need next to no stack, so the compiler gives them no check of the stack either (seen with Go 1.26, both CPUs).

const (
	// PreempterMoments is the size of the ring of moments. A preempter holds at most one moment fewer than that.
	PreempterMoments = 512
	// settleHere is the shortest time between two visits to a CPU.
	settleHere = int64(15_000)
	// settles is how often a preempter waits until another thread has had the CPU.
	settles = 3
	// tryAgain is how soon a preempter tries again if the sampling thread was busy, plus up to 65 microseconds. After
	// triesEach tries it doubles the time, up to triesMost times.
	tryAgain  = int64(80_000)
	triesEach = 3
	triesMost = 3
	// stopWithin is how long a visit may wait for the stop of its thread, until any preempter that wakes up ends the
	// wait.
	stopWithin = int64(100_000)
	// hurryEach bounds the time until a preempter again makes the sampling thread go on.
	hurryEach = int64(1_000_000)
	// watchAfter is the time after which a preempter that has called the sampling thread wakes up to see whether the
	// visit takes too long. If stops came late recently, or other threads are stopped, the preempter wakes up after
	// stopWithin. While the sampling thread waits, its signals are blocked. So Go cannot stop the world, and its
	// collector and all of goprof may have to wait.
	watchAfter = int64(10_000_000)
	lateLately = int64(20_000_000)
	// raiseExpected is how long after the moment of a visit a preempter expects that the sampling thread has stepped
	// aside.
	raiseExpected = int64(100_000)
	// raiseLate is the time after which any preempter brings the sampling thread back, if the preempter that was asked
	// has not done so.
	raiseLate = int64(300_000)
)

// The values of the word caller. callerNone: no preempter has called the sampling thread. callerComing: a preempter is
// about to call. callerBusy: the sampling thread is busy. Other values: the number + 1 of the preempter that has
// called.
const (
	callerNone   = 0
	callerComing = 1<<32 - 2
	callerBusy   = 1<<32 - 1
)

// takenFor is how many visits in a row must have met a thread before a CPU no longer counts as idle.
const takenFor = 3

// wantedNumbers is how many processes the table of wanted ones distinguishes, by the last bits of their number.
const wantedNumbers = 1 << 16

// shared is the memory that the sampling thread and all preempters share. It is not in Go's heap.
type shared struct {
	caller   atomic.Uint32 // the preempter that has called; the sampling thread sleeps on this word
	at       atomic.Int32  // the preempter to whose CPU the sampling thread is bound, -1: none
	since    atomic.Int64  // when the sampling thread was called
	lateAt   atomic.Int64  // when the sampling thread last had to go on, because a thread did not stop
	aside    atomic.Uint32 // 1: the sampling thread has stepped aside, and must be brought back (aside.go)
	moved    atomic.Uint32 // how often it was brought back; the sampling thread sleeps on this word
	asideAt  atomic.Int64
	rest     atomic.Int64  // the sampling thread is busy until then
	hasty    atomic.Uint32 // 1: other threads are stopped, or may be, while the sampling thread waits for a stop
	coming   atomic.Int64  // the moment of the next visit to the CPU of the last call; 0: not known
	patience atomic.Int64  // how late a visit may be
	pid, tid uintptr       // the sampling thread's
	first    unix.SchedAttr
	wanted   [wantedNumbers / 32]atomic.Uint32
}

// preempter is the Room of a preempter's Thread.
type preempter struct {
	shared *shared
	number int32 // counted from 0
	tid    uint32
	mask   cpuMask // its CPU alone
	over   atomic.Uint32

	news    atomic.Uint32 // changes when there is news; the preempter sleeps on this word
	dry     atomic.Uint32 // 1: the preempter waits for moments
	put     atomic.Uint32
	taken   atomic.Uint32
	planned [PreempterMoments]plannedVisit
	until   unix.Timespec

	head    *uint64 // the head of the kernel's notes of switches; nil: there are none
	notes   unsafe.Pointer
	size    uint64
	seen    uint64  // the head at the preempter's last visit
	all     bool    // the notes name the threads of all processes
	sched   uintptr // a descriptor of the preempter's own sched, if there are no notes
	account schedFile

	visit   plannedVisit // the present visit
	met     uint32       // the thread that it has met, if known
	again   int64        // when to try the visit again; 0: there is none
	settled int
	tries   uint32       // how often the sampling thread was busy at this visit
	redo    atomic.Int64 // when to repeat the visit of the last call; 0: not at all
	last    int64        // when the last visit was
	watchAt int64
	raiseAt atomic.Int64 // when to bring the sampling thread back; 0: not at all

	// The visit of the last call. It stays the same until the sampling thread is free again, even if the preempter
	// wakes up meanwhile.
	arrived     int64
	called      plannedVisit
	whom        uint32 // the thread that was met
	headThen    uint64 // seen
	accountThen schedFile

	metInARow atomic.Int32 // how many visits in a row have found a thread there, up to takenFor
	counts    preempterCounts
}

type plannedVisit struct{ at, stands int64 }

// schedFile is the content of a preempter's own sched (proc(5)).
type schedFile struct {
	bytes [4096]byte
	n     int
}

type preempterCounts struct{ held, met, missed atomic.Int64 }

// serve is the loop of a preempter.
//
//go:nosplit
func serve(room unsafe.Pointer) {
	h := (*preempter)(room)
	tid, _, _ := syscall.RawSyscall(unix.SYS_GETTID, 0, 0, 0)
	h.tid = uint32(tid)
	for {
		news := h.news.Load()
		if h.over.Load() != 0 {
			return
		}
		switch osthread.SleepUntil(&h.news, news, h.next(), &h.until) {
		case unix.ETIMEDOUT:
		case 0, unix.EAGAIN, unix.EINTR:
			continue
		default: // must not happen, but a thread that cannot sleep must not hold a CPU
			return
		}
		now := rawMonotonic(&h.until)
		h.watch(now)
		h.bringBack(now)
		h.makeVisit(now)
	}
}

// next returns the moment until which the preempter sleeps. 0: it sleeps until it is woken.
//
//go:nosplit
func (h *preempter) next() int64 {
	switch at := h.redo.Load(); {
	case at != 0:
		h.redo.Store(0)
		if h.again != 0 {
			h.taken.Add(^uint32(0)) // the visit that was taken comes later
		}
		h.visit, h.again, h.settled, h.tries = h.called, at, 0, 0
	case h.again == 0 && h.takeMoment():
		h.again = max(h.visit.at, h.last+settleHere)
	}
	return earlier(earlier(h.again, h.watchAt), h.raiseAt.Load())
}

//go:nosplit
func earlier(a, b int64) int64 {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// takeMoment takes the next of this preempter's moments. It returns false if there is none.
//
//go:nosplit
func (h *preempter) takeMoment() bool {
	n := h.taken.Load()
	if h.put.Load() == n {
		h.dry.Store(1)
		if h.put.Load() == n {
			return false
		}
	}
	h.visit = h.planned[n%PreempterMoments]
	h.settled, h.tries = 0, 0
	h.taken.Store(n + 1)
	return true
}

// makeVisit makes the visit that is due, or delays it a little.
//
//go:nosplit
func (h *preempter) makeVisit(now int64) {
	if h.again == 0 || now < h.again {
		return
	}
	h.again = 0
	h.hurry(now)
	if now-h.visit.at > h.shared.patience.Load() {
		h.counts.missed.Add(1)
		return
	}
	switch who := h.whoWasHere(); {
	case who == noSwitch && h.settled < settles:
		// The preempter has come back at once, and no thread has had the CPU since the last visit.
		h.settled++
		h.again = now + settleHere
		return
	case who == noSwitch || who == ourselves: // goprof's own time is not the program's
	case !h.maySee(who, now):
		return
	case who != nobody:
		h.counts.met.Add(1)
	}
	h.last = now
	h.counts.held.Add(1)
}

// maySee calls the sampling thread if who, the thread that was on this CPU, is wanted. It returns false if the sampling
// thread is busy. Then the preempter tries again a little later.
//
// If the sampling thread is busy with another CPU, the preempter tries again whichever thread is here now. So the
// choice of the sampled thread does not depend on the present one. If the sampling thread waits on this CPU for a
// thread to stop, that thread is likely to be here at the next try as well. So maySee counts any other thread at once.
//
//go:nosplit
func (h *preempter) maySee(who int, now int64) bool {
	l := h.shared
	if who == wanted && l.caller.CompareAndSwap(callerNone, callerComing) && h.call(now) {
		return true
	}
	if who != wanted && l.caller.Load() == callerNone {
		return true
	}
	if l.at.Load() == h.number && l.aside.Load() == 0 && (who != wanted || h.isOurs(now)) {
		return true
	}
	h.again = max(now+tryAgain<<min(h.tries/triesEach, triesMost), l.rest.Load()) + now&0xffff
	h.tries++
	return false
}

// The sorts of threads that had the CPU.
const (
	noSwitch  = iota // no thread has run since the last visit
	ourselves        // a thread of goprof's
	nobody
	other  // a thread of another process
	wanted // a thread of a sampled process; or not known
)

// The type of a note of a switch, and its flag for the thread that leaves (include/uapi/linux/perf_event.h).
const (
	NoteOfSwitch = 15      // PERF_RECORD_SWITCH_CPU_WIDE
	NoteOfOut    = 1 << 13 // PERF_RECORD_MISC_SWITCH_OUT
)

// whoWasHere returns which sort of thread had this CPU before the preempter: see noSwitch. It reads the kernel's newest
// note of this CPU.
//
//go:nosplit
func (h *preempter) whoWasHere() int {
	if h.head == nil {
		n, _, e := syscall.RawSyscall6(unix.SYS_PREAD64, h.sched, uintptr(unsafe.Pointer(&h.account.bytes)),
			unsafe.Sizeof(h.account.bytes), 0, 0, 0)
		if h.account.n = int(n); e != 0 {
			h.account.n = 0
		}
		return wanted
	}
	head := atomic.LoadUint64(h.head)
	if head == h.seen {
		return noSwitch
	}
	h.seen = head
	// The record: u32 type; u16 misc, size; u32 pid, tid of the thread that was here; u32 pid, tid of the one that
	// came.
	kind, was, came := h.note(head), h.note(head+8), h.note(head+16)
	if uint32(kind) != NoteOfSwitch || kind>>32&NoteOfOut != 0 || uint32(came>>32) != h.tid {
		return noSwitch
	}
	if was>>32 == 0 { // the idle thread, or a thread outside of goprof's namespace
		if h.all {
			h.metInARow.Store(0)
		}
		return nobody
	}
	pid := uintptr(uint32(was))
	if pid == h.shared.pid {
		return ourselves // this does not show whether the CPU is idle
	}
	if n := h.metInARow.Load(); n < takenFor {
		h.metInARow.Store(n + 1)
	}
	h.met = uint32(was >> 32)
	if h.shared.wanted[pid%wantedNumbers/32].Load()>>(pid%32)&1 == 0 {
		return other
	}
	return wanted
}

// note returns a word of the kernel's notes. Records begin at multiples of 8.
//
//go:nosplit
func (h *preempter) note(at uint64) uint64 {
	return *(*uint64)(unsafe.Add(h.notes, at&(h.size-1)&^7))
}

// call wakes the sampling thread on this CPU. Before, this preempter has set caller to callerComing, so the sampling
// thread sleeps until caller has the preempter's number. That number is written last. call returns false if the
// sampling thread cannot run on this CPU.
//
//go:nosplit
func (h *preempter) call(now int64) bool {
	l := h.shared
	h.arrived, h.called, h.whom, h.headThen = now, h.visit, h.met, h.seen
	if h.head == nil {
		h.accountThen = h.account
	}
	l.since.Store(now)
	coming := int64(0)
	if n := h.taken.Load(); n != h.put.Load() {
		coming = h.planned[n%PreempterMoments].at
	}
	l.coming.Store(coming)
	comes := l.at.Load() == h.number || h.bindSampling()
	if comes {
		h.watchAt = h.watchWhen(now, coming)
		l.caller.Store(uint32(h.number) + 1)
	} else {
		l.caller.Store(callerNone)
	}
	osthread.Wake(&l.caller)
	return comes
}

// watchWhen returns when this preempter must check whether its visit takes too long. 0: at its next visit.
//
//go:nosplit
func (h *preempter) watchWhen(now, coming int64) int64 {
	l := h.shared
	switch {
	case now-l.lateAt.Load() < lateLately || l.hasty.Load() != 0:
		return now + stopWithin
	case coming != 0 && coming <= now+watchAfter:
		return 0
	}
	return now + watchAfter
}

// isOurs reports whether goprof itself uses this CPU now: the sampling thread is here, and waits for its thread to
// stop.
//
//go:nosplit
func (h *preempter) isOurs(now int64) bool {
	if h.head == nil {
		return now-h.shared.since.Load() < stopWithin // the thread that was here is not known
	}
	return h.met == h.whom && h.shared.caller.Load() == uint32(h.number)+1
}

// bindSampling binds the sampling thread to this CPU.
//
//go:nosplit
func (h *preempter) bindSampling() bool {
	_, _, e := syscall.RawSyscall(unix.SYS_SCHED_SETAFFINITY, h.shared.tid, unsafe.Sizeof(h.mask),
		uintptr(unsafe.Pointer(&h.mask)))
	if e == 0 {
		h.shared.at.Store(h.number)
	}
	return e == 0
}

// watch makes the sampling thread go on if the visit of this preempter's call waits for too long.
//
//go:nosplit
func (h *preempter) watch(now int64) {
	if h.watchAt == 0 || now < h.watchAt {
		return
	}
	h.watchAt = 0
	if h.shared.caller.Load() == uint32(h.number)+1 {
		h.hurry(now)
		h.watchAt = now + max(tryAgain, min((now-h.shared.since.Load())/2, hurryEach))
	}
}

// hurry makes the sampling thread go on if it waits for a thread that does not stop. Each time the next signal comes
// later, up to hurryEach. Otherwise, on a machine where handling the signal takes longer than tryAgain, the sampling
// thread would do nothing else.
//
//go:nosplit
func (h *preempter) hurry(now int64) {
	l := h.shared
	b := l.caller.Load()
	called := b != callerNone && b != callerComing && b != callerBusy
	since := l.since.Load()
	waits := now - since
	again := now-max(since, l.lateAt.Load()) >= min(waits/2, hurryEach)
	if called && l.aside.Load() == 0 && waits >= stopWithin && again {
		l.lateAt.Store(now)
		syscall.RawSyscall(unix.SYS_TGKILL, l.pid, l.tid, boundSignal)
	}
}

// bringBack brings the sampling thread to this CPU and gives it its priority back, if it has stepped aside. A preempter
// that was asked once is likely to be asked again at the next visit. So it stays awake for that moment. To wake it
// then, another CPU would have to send an interrupt, and a stopped thread would wait for that.
//
//go:nosplit
func (h *preempter) bringBack(now int64) {
	l, at := h.shared, h.raiseAt.Load()
	asked := at != 0 && now >= at
	if !asked && (l.aside.Load() == 0 || now-l.asideAt.Load() < raiseLate) {
		return
	}
	next := int64(0)
	if l.aside.Load() != 0 {
		h.bindSampling()
		syscall.RawSyscall(unix.SYS_SCHED_SETATTR, l.tid, uintptr(unsafe.Pointer(&l.first)), 0)
		l.moved.Add(1)
		osthread.Wake(&l.moved)
		if coming := l.coming.Load(); coming > now {
			next = coming + raiseExpected
		}
	}
	if asked {
		h.raiseAt.CompareAndSwap(at, next)
	}
}
