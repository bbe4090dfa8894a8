//go:build linux

package perf

import (
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"goprof/process"
	"goprof/sampler/ring"
)

// A checker is an OS thread that looks at each sample as soon as the kernel has written it into a ring (memory that
// goprof shares with the kernel). It leaves the sample in the ring. It wakes the sampling thread at once in three
// cases: the sample goes through new code, which must be noted in time; its thread or process is not known; or a ring
// fills. Otherwise the sample waits until the sampling thread wakes up for other work. In an agent that is the next
// pulse at the latest (sampler/pulse.go).
//
// Waking the sampling thread for each sample would cost more: a wake-up involves Go's scheduler, and the caches are
// cold. A checker takes some microseconds for a sample (docs/decisions/0021).
//
// All functions in this file run on the checker's OS thread, which Go does not know: see osthread.Thread. The sampling
// thread may read a record while the checker looks at it, and then the kernel may write another one in its place. So
// the checker bounds all that it reads, and its findings decide only whether it wakes the sampling thread.

const (
	// mostChecked bounds the rings of a checker. Pages of unused rings get no memory.
	mostChecked = 1 << 13
	// oftenMost finds in a row, each some perfSoon after the one before, show that many threads run. The checker then
	// sleeps for perfSoon, and looks at several samples together, until such a sleep has brought none.
	oftenMost = 8
	// mostProcesses bounds the processes whose code a checker knows. That is more than an agent records, unless
	// max-jvms is raised. The known code of one more process takes a megabyte of Go's heap.
	mostProcesses = 256
	knownTIDs     = 1 << 12
	// unwanted stands in checkedThread.top for a thread of which no sample is wanted.
	unwanted = 1
	// mostLooked bounds how much of a stack the checker looks at (vmstructs/sightings.go, mostScanned).
	mostLooked = 64 << 10
)

// checker is the Room of a checker's Thread. The caches are cold at each wake-up. So the data that a look needs are
// close together, on few pages.
type checker struct {
	over   atomic.Uint32
	calls  atomic.Uint32 // 1: it has woken the sampling thread, which has not answered yet
	most   atomic.Int32  // how many samples may stay in the rings
	wakeFD uintptr       // the sampling thread waits for this descriptor

	n        int     // number of rings
	epoll    uintptr // waits for the rings, and for the descriptor that ends a sleep
	events   [4]unix.EpollEvent
	ringLost bool // epoll has lost a ring
	noEpoll  bool // epoll cannot be used

	chain bool    // samples have the kernel's frames
	regs  uint64  // how many registers a sample has
	ask   [2]int8 // the registers that hold code addresses; -1: none
	sp    uint64  // the register that holds the stack pointer

	lying   int32 // samples found since the last call, or since all were read
	when    int64 // the moment of the last sample, by the kernel's record
	foundAt int64 // the same at the find before
	often   int   // finds in a row that came soon, up to oftenMost
	ts      unix.Timespec

	pids    [mostProcesses]atomic.Int32 // 0: none
	rings   [mostChecked]checkedRing
	threads [knownTIDs]checkedThread // the index is the last bits of a thread's number
	codes   [mostProcesses]process.KnownCode
}

type checkedThread struct {
	top atomic.Uint64 // the upper end of its stack; 0: not known
	tid atomic.Uint32
}

type checkedRing struct {
	head, tail *uint64
	data       unsafe.Pointer
	size       uint64
	seen       uint64 // the checker has looked at the ring up to here
}

// runChecker is the loop of a checker.
//
//go:nosplit
func runChecker(room unsafe.Pointer) {
	s := (*checker)(room)
	for s.over.Load() == 0 {
		s.sleep()
		s.lookIntoRings()
	}
}

// sleep sleeps until there is a sample. If samples come often, it looks at several together.
//
// epoll keeps the descriptors from one sleep to the next. With poll(2) a sleep costs more the more CPUs there are.
// lookIntoRings looks into all rings, so sleep does not find out which one has a sample.
//
//go:nosplit
func (s *checker) sleep() {
	if s.often == oftenMost || s.noEpoll {
		s.ts.Sec, s.ts.Nsec = 0, perfSoon
		syscall.RawSyscall6(unix.SYS_CLOCK_NANOSLEEP, unix.CLOCK_MONOTONIC, 0, uintptr(unsafe.Pointer(&s.ts)), 0, 0, 0)
		return
	}
	limit := -1
	if s.ringLost {
		limit = int(perfSoon / 1e6)
	}
	n, _, e := syscall.RawSyscall6(unix.SYS_EPOLL_PWAIT, s.epoll, uintptr(unsafe.Pointer(&s.events)),
		uintptr(len(s.events)), uintptr(limit), 0, 0)
	if e != 0 {
		s.noEpoll = s.noEpoll || e != unix.EINTR // a thread that cannot wait must not hold a CPU
		return
	}
	for i := range s.events[:min(uint(n), uint(len(s.events)))] {
		if s.events[i].Events&^unix.EPOLLIN != 0 { // the ring's owner has ended
			s.ringLost = true
		}
	}
}

// lookIntoRings looks at the new samples in all rings, and calls the sampling thread if necessary.
//
//go:nosplit
func (s *checker) lookIntoRings() {
	found, urgent, waiting := false, false, false
	s.when = 0
	for i := range s.rings[:min(uint(s.n), mostChecked)] {
		r := &s.rings[i]
		tail := atomic.LoadUint64(r.tail) // read before head, so that tail is not beyond head
		head := atomic.LoadUint64(r.head)
		if int64(tail-r.seen) > 0 {
			r.seen = tail
		}
		if head != r.seen {
			found = true
			urgent = s.look(r, head) || urgent
		}
		waiting = waiting || head != tail
		urgent = urgent || head-tail > r.size-r.size/4
	}
	s.noteFind(found)
	if !waiting {
		s.lying = 0
	}
	if urgent || s.lying >= s.most.Load() {
		s.call()
		s.lying = 0
	}
}

// noteFind counts how many finds in a row came soon (oftenMost). The times of samples serve: to ask for the time would
// be another system call for each sample.
//
//go:nosplit
func (s *checker) noteFind(found bool) {
	switch {
	case found && (s.often == oftenMost || s.when-s.foundAt <= perfSoon+perfSoon/4):
		s.often = min(s.often+1, oftenMost)
	case found || s.often == oftenMost:
		s.often = 0
	}
	if found {
		s.foundAt = s.when
	}
}

// call wakes the sampling thread.
//
//go:nosplit
func (s *checker) call() {
	one := uint64(1)
	s.calls.Store(1)
	syscall.RawSyscall(unix.SYS_WRITE, s.wakeFD, uintptr(unsafe.Pointer(&one)), unsafe.Sizeof(one))
}

// look looks at the records up to head. It reports whether the sampling thread must see one of them at once.
//
//go:nosplit
func (s *checker) look(r *checkedRing, head uint64) (urgent bool) {
	for r.seen != head {
		if head-r.seen > r.size {
			r.seen = head
			return true
		}
		word := r.word(r.seen)
		size := word >> 48
		if size < ring.HeaderSize || size&7 != 0 || size > head-r.seen {
			r.seen = head
			return true
		}
		if uint32(word) == ring.KindSample && !(size == ring.SpanRecord && ring.BeginsSpan(r.word(r.seen+ring.SpanMark))) {
			s.lying++
			s.when = max(s.when, int64(r.word(r.seen+ring.HeaderSize+8)))
			urgent = urgent || s.isNews(r, r.seen+ring.HeaderSize, r.seen+size)
		}
		r.seen += size
	}
	return urgent
}

// isNews reports whether the sampling thread must see this sample at once: its code, thread or process is not known
// yet.
//
//go:nosplit
func (s *checker) isNews(r *checkedRing, at, end uint64) bool {
	who := r.word(at)
	k := s.codeOf(int32(who))
	tid := uint32(who >> 32)
	th := &s.threads[tid%knownTIDs]
	if k == nil || th.tid.Load() != tid {
		return true
	}
	top := th.top.Load()
	if top == unwanted {
		return false
	}
	at += 16
	if s.chain {
		n := r.word(at)
		if n > (end-at)/8 {
			return true
		}
		at += 8 + 8*n
	}
	if at >= end || end-at < 8*(2+s.regs) || r.word(at) == 0 {
		return false // a sample without registers is lost
	}
	for _, reg := range s.ask {
		if reg >= 0 && k.IsNew(r.word(at+8+8*uint64(reg))) {
			return true
		}
	}
	sp := r.word(at + 8 + 8*s.sp)
	at += 8 + 8*s.regs
	size := r.word(at)
	at += 8
	if size > end-at || size != 0 && end-at-size < 8 {
		return true
	}
	if size != 0 {
		size = min(size, r.word(at+size)) // the bytes that were copied
	}
	if top > sp { // above top is not the thread's stack
		size = min(size, top-sp)
	}
	for end = at + min(size, mostLooked); at < end; at += 8 {
		if k.IsNew(r.word(at)) {
			return true
		}
	}
	return false
}

// codeOf returns the known code of a process.
//
//go:nosplit
func (s *checker) codeOf(pid int32) *process.KnownCode {
	for i := range s.pids {
		if pid != 0 && s.pids[i].Load() == pid {
			return &s.codes[i]
		}
	}
	return nil
}

// word returns a word of the ring.
//
//go:nosplit
func (r *checkedRing) word(at uint64) uint64 {
	return *(*uint64)(unsafe.Add(r.data, at&(r.size-1)&^7))
}
