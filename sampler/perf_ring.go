//go:build linux

package sampler

import (
	"errors"
	"os"
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"goprof/process/procfs"
	"goprof/sampler/ptrace"
)

// perfRing is memory that we share with the kernel. Its first page says how far the kernel has written and how far we
// have read; the records follow. A ring belongs to one CPU, and tells only what happens on that CPU. So its records are
// in the order of time.
type perfRing struct {
	fd   int // an event of our own that does nothing but hold the ring
	mem  []byte
	head *uint64 // the kernel writes it
	tail *uint64 // we write it
	data ringBytes
}

// The offsets of data_head and data_tail in struct perf_event_mmap_page (include/uapi/linux/perf_event.h).
const (
	mmapPageHead = 1024
	mmapPageTail = 1032
)

// openRing makes a ring of size bytes.
func openRing(cpu, size int, attr *unix.PerfEventAttr) (*perfRing, error) {
	if err := sameClock(); err != nil {
		return nil, err
	}
	fd, err := unix.PerfEventOpen(attr, 0, cpu, -1, unix.PERF_FLAG_FD_CLOEXEC)
	if err != nil {
		return nil, &PerfError{"perf_event_open", err}
	}
	page := os.Getpagesize()
	mem, err := lockedRings.mmap(fd, page+size)
	if err != nil {
		unix.Close(fd)
		return nil, &PerfError{"mmap", err}
	}
	return &perfRing{
		fd: fd, mem: mem, data: ringBytes(mem[page:]),
		head: (*uint64)(unsafe.Pointer(&mem[mmapPageHead])),
		tail: (*uint64)(unsafe.Pointer(&mem[mmapPageTail])),
	}, nil
}

// openRings makes a ring of size bytes for each of these CPUs, or rings of as many fewer as we may have, but not
// fewer than least. All have the same size: what a process without CAP_IPC_LOCK may lock is one sum for all rings of
// its user (kernel/events/core.c, perf_mmap: kernel.perf_event_mlock_kb, 516, for each CPU, and RLIMIT_MEMLOCK).
func openRings(cpus []int, size, least int) (rings ringSet, err error) {
	attr := holderAttr()
	for ; size >= least; size /= 2 {
		rings = rings[:0]
		for _, cpu := range cpus {
			var ring *perfRing
			if ring, err = openRing(cpu, size, &attr); err != nil {
				break
			}
			rings = append(rings, ring)
		}
		if err == nil {
			return rings, nil
		}
		rings.close()
		if failed := (*PerfError)(nil); errors.As(err, &failed) && failed.Call != "mmap" {
			break
		}
	}
	return nil, err
}

func (r *perfRing) close() {
	lockedRings.munmap(r.mem)
	unix.Close(r.fd)
}

// recordTaker is who takes what a ring holds.
type recordTaker interface {
	// record takes a sample or a switch. It lies in the ring, and is gone when record returns: meanwhile the kernel may
	// want its room back.
	record(b ringBytes, rec perfRecord)
	// lose counts records that are not there.
	lose(o ptrace.Outcome, n int64)
}

// drain hands over what there is, in order, and reports whether there was anything.
//
// Go's atomic loads and stores order the code around them. So records are not read before the head that says that they
// are whole. They are not given back before they were read (kernel/events/ring_buffer.c, perf_output_put_handle).
func (r *perfRing) drain(to recordTaker) (found bool) {
	head, tail := atomic.LoadUint64(r.head), *r.tail
	for found = tail != head; tail != head; {
		rec, ok := r.data.next(tail, head)
		if !ok { // what is left is damaged
			to.lose(ptrace.Failed, 1)
			atomic.StoreUint64(r.tail, head)
			return true
		}
		switch rec.kind {
		case perfSample, perfSwitch:
			to.record(r.data, rec)
		case perfLost, perfLostSamples:
			to.lose(ptrace.RingFull, r.data.parseLost(rec))
		case perfThrottle:
			to.lose(ptrace.Throttled, 1) // at least: until the next tick of the kernel's clock
		}
		tail = rec.end
		atomic.StoreUint64(r.tail, tail) // soon: the next sample may need the room
	}
	return found
}

// ringSet is a ring for each CPU, by its index.
type ringSet []*perfRing

func (s ringSet) close() {
	for _, ring := range s {
		ring.close()
	}
}

// polls is what to wait for.
func (s ringSet) polls() (polls []unix.PollFd) {
	for _, ring := range s {
		polls = append(polls, unix.PollFd{Fd: int32(ring.fd), Events: unix.POLLIN})
	}
	return polls
}

// haveRecords reports whether there is something to drain.
func (s ringSet) haveRecords() bool {
	for _, ring := range s {
		if atomic.LoadUint64(ring.head) != *ring.tail {
			return true
		}
	}
	return false
}

func (s ringSet) drain(to recordTaker) {
	for _, ring := range s {
		ring.drain(to)
	}
}

// openEvents makes events of a thread on these CPUs, whose rings these are. A CPU that was switched off meanwhile has
// none.
func (s ringSet) openEvents(attr *unix.PerfEventAttr, tid int, cpus []int) (fds []int, err error) {
	for i, cpu := range cpus {
		fd, err := openEvent(attr, tid, cpu, s[i])
		if errors.Is(err, unix.ENODEV) {
			continue
		}
		if err != nil {
			return fds, err
		}
		fds = append(fds, fd)
	}
	return fds, nil
}

// listBytes is how much of the list of threads is read at a time.
const listBytes = 32 << 10

// eachThread calls open with each thread of a process. A thread that begins later inherits the events of the thread
// that made it. So threads are listed until no new one has come in between. Where new threads come all the time, most
// of them inherit.
func eachThread(proc *procfs.Dir, open func(tid int) error) error {
	seen := map[int]bool{}
	for range 16 {
		var fresh []int
		proc.Threads(make([]byte, listBytes), func(tid int) {
			if !seen[tid] {
				fresh = append(fresh, tid)
			}
		})
		if len(fresh) == 0 {
			return nil
		}
		for _, tid := range fresh {
			seen[tid] = true
			if err := open(tid); err != nil && !errors.Is(err, unix.ESRCH) {
				return err
			}
		}
	}
	return nil
}

// sleepUntilRecords sleeps until one of these descriptors has something. Like ptrace.SleepUntil, it does not tell Go's
// scheduler, unless tell says so.
func sleepUntilRecords(polls []unix.PollFd, most *unix.Timespec, tell bool) {
	for i := range polls {
		polls[i].Revents = 0
	}
	list, n, ts := unsafe.Pointer(unsafe.SliceData(polls)), uintptr(len(polls)), unsafe.Pointer(most)
	if tell {
		syscall.Syscall6(unix.SYS_PPOLL, uintptr(list), n, uintptr(ts), 0, 0, 0)
		return
	}
	syscall.RawSyscall6(unix.SYS_PPOLL, uintptr(list), n, uintptr(ts), 0, 0, 0)
}
