//go:build linux

package sampler

import (
	"os"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"goprof/arch"
	"goprof/process"
	"goprof/sampler/ptrace"
)

// A lookout does a sentry's work in the interrupt that takes a sample: a BPF program looks whether the stack goes
// through code that is new, and calls us only then. So a sample with nothing new wakes nobody up. A sentry wakes up for
// each, and that takes as much CPU time as to walk the stack (docs/decisions/0023).
//
// The program runs with each sample of the CPUs' events, and lets those of one process pass. It reads the stack once
// more than the kernel, which is about to copy it. It calls us by a BPF ring buffer; what is written there does not
// matter. Lookouts need Linux 5.17 (bpf_loop), and were tried on 6.18. Elsewhere, and for events of threads, there is a
// sentry.
//
// The kernel writes the sample after the program has run. If we read the rings in between, for another reason, the call
// is answered and its sample is not there. So the program counts samples, and so do we when we read them. If one is
// missing we look again soon (noteRead).

// lookout is the program and what it shares with us.
type lookout struct {
	room   *lookoutRoom
	rung   *atomic.Uint64 // how far the bell's records go
	heard  *atomic.Uint64 // how far we have read them
	prog   int
	bell   int // to be waited for
	files  []int
	mapped [][]byte

	most  uint64 // so many samples in the rings call us
	half  int    // bytes of half a ring; 0: it is not known
	fit   uint64 // so many samples fit into that; 0: it is not known
	never uint64 // how many samples have begun and will never be read
	late  bool   // the last reading missed samples that have begun
}

// lookoutRoom is the value of a BPF map, which is mapped.
type lookoutRoom struct {
	code    process.KnownCode
	begun   atomic.Uint64 // how many samples the program has let pass
	limit   atomic.Uint64 // so many of them call us
	copied  atomic.Uint64 // so much of a stack is copied
	threads [knownTIDs]guardedThread
}

// newLookout loads the program for one process. keepIn is called with the place for what code is known. nil: the kernel
// does not take it.
func newLookout(pid int, cpu *arch.CPU, most int, keepIn func(*process.KnownCode)) *lookout {
	l := &lookout{bell: -1, most: uint64(most)}
	if keepIn == nil || l.open(pid, cpu, nil) != nil {
		l.free()
		return nil
	}
	l.answer()
	keepIn(&l.room.code)
	return l
}

// open makes the maps and loads the program. If log is not nil, the kernel's verifier writes into it.
func (l *lookout) open(pid int, cpu *arch.CPU, log []byte) error {
	page := os.Getpagesize()
	size := (int(unsafe.Sizeof(lookoutRoom{})) + page - 1) / page * page
	room, mem, err := bpfMap(size)
	if err != nil {
		return err
	}
	l.files, l.mapped = append(l.files, room), append(l.mapped, mem)
	l.room = (*lookoutRoom)(unsafe.Pointer(&mem[0]))
	if err := l.hang(page); err != nil {
		return err
	}
	parts, err := l.keep(bpfNewMap(bpfMapPerCPU, 4, partLooked+lineLooked, 1))
	if err != nil {
		return err
	}
	l.prog, err = l.keep(lookoutProgram(pid, cpu, room, l.bell, parts).loadForPerf(log))
	return err
}

// hang makes the bell: a ring buffer of one page. Its first two pages say how far it is read and written.
func (l *lookout) hang(page int) (err error) {
	if l.bell, err = l.keep(bpfNewMap(bpfMapRing, 0, 0, page)); err != nil {
		return err
	}
	heard, err := unix.Mmap(l.bell, 0, page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return err
	}
	l.mapped = append(l.mapped, heard)
	rung, err := unix.Mmap(l.bell, int64(page), page, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return err
	}
	l.mapped = append(l.mapped, rung)
	l.heard, l.rung = (*atomic.Uint64)(unsafe.Pointer(&heard[0])), (*atomic.Uint64)(unsafe.Pointer(&rung[0]))
	return nil
}

func (l *lookout) keep(fd int, err error) (int, error) {
	if err == nil {
		l.files = append(l.files, fd)
	}
	return fd, err
}

// close ends it. Its events must be closed.
func (l *lookout) close(keepIn func(*process.KnownCode)) {
	if l != nil {
		keepIn(nil)
		l.free()
	}
}

func (l *lookout) free() {
	for _, fd := range l.files {
		unix.Close(fd)
	}
	for _, mem := range l.mapped {
		unix.Munmap(mem)
	}
}

// copies tells how much of a stack is copied: what lies below is nothing to us.
func (l *lookout) copies(stack int) {
	if l != nil {
		l.room.copied.Store(uint64(min(stack, mostLooked)) &^ 7)
		l.fit = uint64(max(l.half/(stack+besideStack), 1))
		l.room.limit.Store(min(l.room.limit.Load(), l.room.begun.Load()+l.together()))
	}
}

// besideStack bounds what a sample has beside the copy of its stack: registers, and up to 127 of the kernel's frames
// (kernel.perf_event_max_stack).
const besideStack = 2 << 10

// know is sentryDuty.know.
func (l *lookout) know(tid int, hint *ptrace.Hint) {
	if l != nil {
		l.room.threads[uint32(tid)%knownTIDs].know(tid, hint)
	}
}

// answer is to be called before the rings are read.
func (l *lookout) answer() {
	if l != nil {
		l.heard.Store(l.rung.Load())
		l.room.limit.Store(l.room.begun.Load() + l.together())
	}
}

// together is how many samples may lie in the rings before the lookout calls.
func (l *lookout) together() uint64 {
	if l.half == 0 || l.fit == 0 {
		return l.most
	}
	return min(l.most, l.fit)
}

// lateSoon is how soon the rings are read again after a reading that missed a sample. The program takes some 6 us for
// a stack of 16 KB (docs/decisions/0023), and then the kernel copies the stack.
const lateSoon = int64(150_000)

// noteRead is to be called after the rings were read: so many samples were read from them so far. What is missing twice
// in a row was lost.
func (l *lookout) noteRead(samples uint64) {
	if l == nil {
		return
	}
	missing := l.room.begun.Load() - samples
	l.late = int64(missing-l.never) > 0 && !l.late
	if !l.late {
		l.never = missing
	}
}

// wakeBy is when to read the rings again, at the latest.
func (l *lookout) wakeBy(now, until int64) int64 {
	if l != nil && l.late {
		return min(until, now+lateSoon)
	}
	return until
}
