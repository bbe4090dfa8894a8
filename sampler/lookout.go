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
// matter. Lookouts need Linux 5.17 (bpf_loop). Elsewhere, and for events of threads, there is a sentry.

// lookout is the program and what it shares with us.
type lookout struct {
	room   *lookoutRoom
	rung   *atomic.Uint64 // how far the bell's records go
	heard  *atomic.Uint64 // how far we have read them
	prog   int
	bell   int // to be waited for
	files  []int
	mapped [][]byte
}

// lookoutRoom is the value of a BPF map, which is mapped.
type lookoutRoom struct {
	code    process.KnownCode
	lying   atomic.Uint64 // how many samples were taken since we read the rings
	most    uint64        // so many of them call us
	copied  atomic.Uint64 // so much of a stack is copied
	threads [knownTIDs]guardedThread
}

// newLookout loads the program for one process. keepIn is called with the place for what code is known. nil: the kernel
// does not take it.
func newLookout(pid int, cpu *arch.CPU, most int, keepIn func(*process.KnownCode)) *lookout {
	l := &lookout{bell: -1}
	if keepIn == nil || l.open(pid, cpu) != nil {
		l.free()
		return nil
	}
	l.room.most = uint64(most)
	keepIn(&l.room.code)
	return l
}

func (l *lookout) open(pid int, cpu *arch.CPU) error {
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
	l.prog, err = l.keep(lookoutProgram(pid, cpu, room, l.bell, parts).loadForPerf(nil))
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
	}
}

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
		l.room.lying.Store(0)
	}
}
