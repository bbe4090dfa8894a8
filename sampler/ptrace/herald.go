//go:build linux

package ptrace

import (
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"goprof/sampler/errand"
)

// A herald is an OS thread that sleeps on its CPU until a visit is due there. Its priority is higher than ours, so it
// takes the CPU from whatever thread runs there. The kernel has noted which thread that was. If a process that is
// sampled owns the thread, the herald calls us: we sleep, so to bind us to its CPU costs little. When the herald sleeps
// again, we have the CPU before that thread has it again (docs/decisions/0019).
//
// In this way nobody is moved who runs, no timer is set between the visits of different CPUs, and a visit that meets
// nobody costs some microseconds.
//
// All in this file but types runs on the herald's OS thread, of which Go does not know: see errand.Thread. The methods
// of atomic types are not marked nosplit. They are inlined. Without inlining (-gcflags=all=-l) they call nothing and
// need next to no stack, so the compiler gives them no check of the stack either (seen with Go 1.26, both CPUs).

const (
	// HeraldMoments: a herald can be told one moment less than that ahead.
	HeraldMoments = 512
	// settleHere is the least time between two visits to a CPU.
	settleHere = int64(15_000)
	// settles is how often a herald waits for it until somebody has had the CPU.
	settles = 3
	// tryAgain is how soon a herald asks again for us where we are busy, and up to 65 us later. After each triesEach
	// times it waits for twice as long, triesMost times.
	tryAgain  = int64(80_000)
	triesEach = 3
	triesMost = 3
	// stopWithin is how long a visit may wait for the stop of its thread where any herald wakes up.
	stopWithin = int64(100_000)
	// watchAfter is when the herald that has called us wakes up to see whether that takes too long. Where stops came
	// late lately, or others stand still, the herald does so after stopWithin. While we wait our signals are blocked, so
	// Go cannot stop the world, and its collector and all of goprof may have to wait for us.
	watchAfter = int64(10_000_000)
	lateLately = int64(20_000_000)
	// raiseExpected is how long after the moment of a visit a herald expects that we have stepped aside.
	raiseExpected = int64(100_000)
	// raiseLate is how soon any herald brings us back if the one that was asked has not done so.
	raiseLate = int64(300_000)
)

// What the bell says: nobody has called us; a herald is about to call us; we are busy; or 1 and more: the herald of
// that number, counted from 1 on, has called us.
const (
	bellFree  = 0
	bellTaken = 1<<32 - 2
	bellBusy  = 1<<32 - 1
)

// takenFor: a CPU counts as idle until so many visits in a row have met somebody there.
const takenFor = 3

// wantedNumbers: processes are wanted by the last bits of their number.
const wantedNumbers = 1 << 16

// hall is what we and all heralds share. It does not lie in Go's heap.
type hall struct {
	bell     atomic.Uint32 // we sleep on it
	at       atomic.Int32  // number of the herald to whose CPU we are bound, -1: none
	since    atomic.Int64  // when we were called
	lateAt   atomic.Int64  // when we were last told to go on, because a thread did not stop
	aside    atomic.Uint32 // 1: we have stepped aside, and are to be brought back (aside.go)
	moved    atomic.Uint32 // how often we were brought back; we sleep on it
	asideAt  atomic.Int64
	rest     atomic.Int64  // we are busy until then
	hasty    atomic.Uint32 // 1: others stand still, or may have to, while we wait for a thread to stop
	coming   atomic.Int64  // the moment of the next visit to the CPU to which we were called last; 0: it is not known
	patience atomic.Int64  // how late a visit may be
	pid, tid uintptr       // our own
	first    unix.SchedAttr
	wanted   [wantedNumbers / 32]atomic.Uint32
}

// herald is the Room of a herald's Thread.
type herald struct {
	hall   *hall
	number int32 // from 0 on
	tid    uint32
	mask   cpuMask // of its CPU
	over   atomic.Uint32

	news  atomic.Uint32 // changes when there is news; the herald sleeps on it
	dry   atomic.Uint32 // 1: it waits for moments
	put   atomic.Uint32
	taken atomic.Uint32
	told  [HeraldMoments]told
	until unix.Timespec

	head    *uint64 // of the kernel's notes of switches; nil: there are none
	notes   unsafe.Pointer
	size    uint64
	seen    uint64  // the head of the notes, when the herald came last
	all     bool    // the notes name the threads of all processes
	sched   uintptr // a descriptor of its own sched, where there are no notes
	account schedFile

	visit   told   // that is under way
	met     uint32 // number of the thread that it has met, where that is known
	again   int64  // when it goes on; 0: there is none
	settled int
	tries   uint32       // how often we were busy
	redo    atomic.Int64 // when to make the visit once more that we were called to; 0: that is not wanted
	last    int64        // when the last visit was
	watchAt int64
	raiseAt atomic.Int64 // when to bring us back; 0: nobody wants it

	// The visit that we are called to. It stands still until we are free again, however often the herald wakes up.
	arrived     int64
	called      told
	whom        uint32 // number of the thread that was met
	headThen    uint64 // seen
	accountThen schedFile

	someone atomic.Int32 // how many visits in a row have found somebody there, up to takenFor
	counts  heraldCounts
}

// told is a visit that a herald is told.
type told struct{ at, stands int64 }

// schedFile is what was read of a herald's own sched (proc(5)).
type schedFile struct {
	bytes [4096]byte
	n     int
}

// heraldCounts are the VisitCounts of a herald.
type heraldCounts struct{ held, met, missed atomic.Int64 }

// serve is what a herald does.
//
//go:nosplit
func serve(room unsafe.Pointer) {
	h := (*herald)(room)
	tid, _, _ := syscall.RawSyscall(unix.SYS_GETTID, 0, 0, 0)
	h.tid = uint32(tid)
	for {
		news := h.news.Load()
		if h.over.Load() != 0 {
			return
		}
		switch errand.SleepUntil(&h.news, news, h.next(), &h.until) {
		case unix.ETIMEDOUT:
		case 0, unix.EAGAIN, unix.EINTR:
			continue
		default: // nothing that may happen; but who cannot sleep must not hold a CPU
			return
		}
		now := rawMonotonic(&h.until)
		h.watch(now)
		h.bringBack(now)
		h.makeVisit(now)
	}
}

// next is the moment until which the herald sleeps. 0: it waits for news.
//
//go:nosplit
func (h *herald) next() int64 {
	switch at := h.redo.Load(); {
	case at != 0:
		h.redo.Store(0)
		if h.again != 0 {
			h.taken.Add(^uint32(0)) // that visit comes later
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

// takeMoment takes the next moment that the herald was told.
//
//go:nosplit
func (h *herald) takeMoment() bool {
	n := h.taken.Load()
	if h.put.Load() == n {
		h.dry.Store(1)
		if h.put.Load() == n {
			return false
		}
	}
	h.visit = h.told[n%HeraldMoments]
	h.settled, h.tries = 0, 0
	h.taken.Store(n + 1)
	return true
}

// makeVisit makes the visit that is due, or puts it off a little.
//
//go:nosplit
func (h *herald) makeVisit(now int64) {
	if h.again == 0 || now < h.again {
		return
	}
	h.again = 0
	h.hurry(now)
	if now-h.visit.at > h.hall.patience.Load() {
		h.counts.missed.Add(1)
		return
	}
	switch who := h.whoWasHere(); {
	case who == noSwitch && h.settled < settles:
		// We came at once, and nobody has had the CPU since the last visit.
		h.settled++
		h.again = now + settleHere
		return
	case who == noSwitch || who == ourselves: // our own time is nobody's
	case !h.maySee(who, now):
		return
	case who != nobody:
		h.counts.met.Add(1)
	}
	h.last = now
	h.counts.held.Add(1)
}

// maySee has us come if we are wanted. False: we are busy, and the herald looks again a little later.
//
// Where we are busy with the visit of another CPU, the herald looks again whoever is here now: what is met later must
// not depend on that. But where we wait here for a thread that is to stop, that thread is likely to be here later. So
// somebody else who is here meanwhile counts at once.
//
//go:nosplit
func (h *herald) maySee(who int, now int64) bool {
	l := h.hall
	if who == wanted && l.bell.CompareAndSwap(bellFree, bellTaken) && h.call(now) {
		return true
	}
	if who != wanted && l.bell.Load() == bellFree {
		return true
	}
	if l.at.Load() == h.number && l.aside.Load() == 0 && (who != wanted || h.isOurs(now)) {
		return true
	}
	h.again = max(now+tryAgain<<min(h.tries/triesEach, triesMost), l.rest.Load()) + now&0xffff
	h.tries++
	return false
}

// Who was on the CPU.
const (
	noSwitch  = iota // nobody has run since the last visit
	ourselves        // a thread of goprof's
	nobody
	other  // a thread of another process
	wanted // a thread of a process that is sampled; or it is not known
)

// The type of a note of a switch, and its flag for the thread that leaves (include/uapi/linux/perf_event.h).
const (
	NoteOfSwitch = 15      // PERF_RECORD_SWITCH_CPU_WIDE
	NoteOfOut    = 1 << 13 // PERF_RECORD_MISC_SWITCH_OUT
)

// whoWasHere reads the kernel's newest note of this CPU: it is that of the herald's coming.
//
//go:nosplit
func (h *herald) whoWasHere() int {
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
	// u32 type; u16 misc, size. u32 pid, tid of the thread that was here. u32 pid, tid of the one that came.
	kind, was, came := h.note(head), h.note(head+8), h.note(head+16)
	if uint32(kind) != NoteOfSwitch || kind>>32&NoteOfOut != 0 || uint32(came>>32) != h.tid {
		return noSwitch
	}
	if was>>32 == 0 { // the idle thread; or a thread that has no number where goprof is
		if h.all {
			h.someone.Store(0)
		}
		return nobody
	}
	pid := uintptr(uint32(was))
	if pid == h.hall.pid {
		return ourselves // this does not tell whether the CPU is idle
	}
	if n := h.someone.Load(); n < takenFor {
		h.someone.Store(n + 1)
	}
	h.met = uint32(was >> 32)
	if h.hall.wanted[pid%wantedNumbers/32].Load()>>(pid%32)&1 == 0 {
		return other
	}
	return wanted
}

// note is a word of the notes. The kernel puts records at multiples of 8.
//
//go:nosplit
func (h *herald) note(at uint64) uint64 {
	return *(*uint64)(unsafe.Add(h.notes, at&(h.size-1)&^7))
}

// call calls us to this CPU. The herald has taken the bell. So we sleep until the bell has the herald's number, and all
// that belongs to the call is written by then. It returns false if we cannot come to this CPU.
//
//go:nosplit
func (h *herald) call(now int64) bool {
	l := h.hall
	h.arrived, h.called, h.whom, h.headThen = now, h.visit, h.met, h.seen
	if h.head == nil {
		h.accountThen = h.account
	}
	l.since.Store(now)
	coming := int64(0)
	if n := h.taken.Load(); n != h.put.Load() {
		coming = h.told[n%HeraldMoments].at
	}
	l.coming.Store(coming)
	comes := l.at.Load() == h.number || h.bindUs()
	if comes {
		h.watchAt = h.watchWhen(now, coming)
		l.bell.Store(uint32(h.number) + 1)
	} else {
		l.bell.Store(bellFree)
	}
	errand.Wake(&l.bell)
	return comes
}

// watchWhen is when the herald that calls us now looks whether the visit takes too long; 0: at its next visit.
//
//go:nosplit
func (h *herald) watchWhen(now, coming int64) int64 {
	l := h.hall
	switch {
	case now-l.lateAt.Load() < lateLately || l.hasty.Load() != 0:
		return now + stopWithin
	case coming != 0 && coming <= now+watchAfter:
		return 0
	}
	return now + watchAfter
}

// isOurs reports whether this moment is nobody's time but ours: we are here, and the thread that we were called for is
// about to stop.
//
//go:nosplit
func (h *herald) isOurs(now int64) bool {
	if h.head == nil {
		return now-h.hall.since.Load() < stopWithin // nobody knows who was here
	}
	return h.met == h.whom && h.hall.bell.Load() == uint32(h.number)+1
}

// bindUs binds us to this CPU.
//
//go:nosplit
func (h *herald) bindUs() bool {
	_, _, e := syscall.RawSyscall(unix.SYS_SCHED_SETAFFINITY, h.hall.tid, unsafe.Sizeof(h.mask),
		uintptr(unsafe.Pointer(&h.mask)))
	if e == 0 {
		h.hall.at.Store(h.number)
	}
	return e == 0
}

// watch has us go on if a visit that this herald has called us to waits for too long.
//
//go:nosplit
func (h *herald) watch(now int64) {
	if h.watchAt == 0 || now < h.watchAt {
		return
	}
	h.watchAt = 0
	if h.hall.bell.Load() == uint32(h.number)+1 {
		h.hurry(now)
		h.watchAt = now + tryAgain
	}
}

// hurry has us go on if we wait for a thread that does not stop.
//
//go:nosplit
func (h *herald) hurry(now int64) {
	l := h.hall
	b := l.bell.Load()
	called := b != bellFree && b != bellTaken && b != bellBusy
	if called && l.aside.Load() == 0 && now-l.since.Load() >= stopWithin {
		l.lateAt.Store(now)
		syscall.RawSyscall(unix.SYS_TGKILL, l.pid, l.tid, boundSignal)
	}
}

// bringBack brings us to this CPU and gives us our priority back, if we have stepped aside. The herald that was asked
// to do so expects that of the next visit there, too. So it need not be woken for it: to wake a thread on another CPU
// takes an interrupt, while somebody stands still.
//
//go:nosplit
func (h *herald) bringBack(now int64) {
	l, at := h.hall, h.raiseAt.Load()
	asked := at != 0 && now >= at
	if !asked && (l.aside.Load() == 0 || now-l.asideAt.Load() < raiseLate) {
		return
	}
	next := int64(0)
	if l.aside.Load() != 0 {
		h.bindUs()
		syscall.RawSyscall(unix.SYS_SCHED_SETATTR, l.tid, uintptr(unsafe.Pointer(&l.first)), 0)
		l.moved.Add(1)
		errand.Wake(&l.moved)
		if coming := l.coming.Load(); coming > now {
			next = coming + raiseExpected
		}
	}
	if asked {
		h.raiseAt.CompareAndSwap(at, next)
	}
}
