//go:build linux

package ring

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

// Ring is memory that goprof shares with the kernel. Its first page says how far the kernel has written and how far
// goprof has read; the records follow. A ring belongs to one CPU, and has only records of that CPU. So its records are
// in the order of time.
type Ring struct {
	FD   int // an event that does nothing but hold the ring
	mem  []byte
	Head *uint64 // the kernel writes it
	Tail *uint64 // goprof writes it
	Data Bytes
	span spanBefore
}

// The offsets of data_head and data_tail in struct perf_event_mmap_page (include/uapi/linux/perf_event.h).
const (
	HeadAt       = 1024
	mmapPageTail = 1032
)

func openOne(cpu, size int, attr *unix.PerfEventAttr) (*Ring, error) {
	if err := SameClock(); err != nil {
		return nil, err
	}
	fd, err := unix.PerfEventOpen(attr, 0, cpu, -1, unix.PERF_FLAG_FD_CLOEXEC)
	if err != nil {
		return nil, &Error{"perf_event_open", err}
	}
	page := os.Getpagesize()
	mem, err := lockedRings.mmap(fd, page+size)
	if err != nil {
		unix.Close(fd)
		return nil, &Error{"mmap", err}
	}
	return &Ring{
		FD: fd, mem: mem, Data: Bytes(mem[page:]),
		Head: (*uint64)(unsafe.Pointer(&mem[HeadAt])),
		Tail: (*uint64)(unsafe.Pointer(&mem[mmapPageTail])),
	}, nil
}

// Open makes a ring of size bytes for each of these CPUs. If goprof may not lock so much memory, it makes smaller
// rings, of least bytes or more. All have the same size. Without CAP_IPC_LOCK, one limit holds for the sum of all rings
// of a user (kernel/events/core.c, perf_mmap: kernel.perf_event_mlock_kb for each CPU, by default 512 KB and a page,
// and RLIMIT_MEMLOCK).
func Open(cpus []int, size, least int) (rings Set, err error) {
	attr := holderAttr()
	for ; size >= least; size /= 2 {
		rings = rings[:0]
		for _, cpu := range cpus {
			var ring *Ring
			if ring, err = openOne(cpu, size, &attr); err != nil {
				break
			}
			rings = append(rings, ring)
		}
		if err == nil {
			return rings, nil
		}
		rings.Close()
		if failed := (*Error)(nil); errors.As(err, &failed) && failed.Call != "mmap" {
			break
		}
	}
	return nil, err
}

func (r *Ring) close() {
	lockedRings.munmap(r.mem)
	unix.Close(r.FD)
}

// Taker takes what a ring holds.
type Taker interface {
	// Record takes a record that an event was asked for. It lies in the ring, and is gone when Record returns: the kernel
	// may want its room back.
	Record(b Bytes, rec Record)
	// Lose counts records that are not there.
	Lose(o ptrace.Outcome, n int64)
}

// Drain hands over all records that are in the ring, in order.
//
// Go's atomic loads and stores order the code around them. So a record is read only after the head that covers it, and
// given back only after it was read (kernel/events/ring_buffer.c, perf_output_put_handle).
func (r *Ring) Drain(to Taker) {
	head, tail := atomic.LoadUint64(r.Head), *r.Tail
	for tail != head {
		rec, ok := r.Data.Next(tail, head)
		if !ok { // what is left is damaged
			to.Lose(ptrace.Failed, 1)
			r.span.tid = 0
			atomic.StoreUint64(r.Tail, head)
			return
		}
		rec.before = &r.span
		if rec.Kind != KindSample || !r.Data.parseSpan(rec, &r.span) {
			r.give(to, rec)
			r.span.tid = 0
		}
		tail = rec.End
		atomic.StoreUint64(r.Tail, tail) // soon: the next sample may need the room
	}
}

// give hands over one record.
func (r *Ring) give(to Taker, rec Record) {
	switch rec.Kind {
	case KindSample, KindSwitch, KindComm, KindFork, KindExit:
		to.Record(r.Data, rec)
	case perfLost, perfLostSamples:
		to.Lose(ptrace.RingFull, r.Data.parseLost(rec))
	case KindThrottle:
		to.Lose(ptrace.Throttled, 1) // at least: until the next tick of the kernel's clock
	}
}

// Set is a ring for each CPU, by its index.
type Set []*Ring

// Close closes all rings. Events that write into them are to be closed first.
func (s Set) Close() {
	for _, ring := range s {
		ring.close()
	}
}

// Polls is what to wait for.
func (s Set) Polls() (polls []unix.PollFd) {
	for _, ring := range s {
		polls = append(polls, unix.PollFd{Fd: int32(ring.FD), Events: unix.POLLIN})
	}
	return polls
}

// HaveRecords reports whether there is something to drain.
func (s Set) HaveRecords() bool {
	for _, ring := range s {
		if atomic.LoadUint64(ring.Head) != *ring.Tail {
			return true
		}
	}
	return false
}

// Drain hands over what all rings hold, one ring after the other.
func (s Set) Drain(to Taker) {
	for _, ring := range s {
		ring.Drain(to)
	}
}

// OpenEvents makes events of a thread on these CPUs, whose rings these are. A CPU that was switched off meanwhile has
// none.
func (s Set) OpenEvents(attr *unix.PerfEventAttr, tid int, cpus []int) (fds []int, err error) {
	for i, cpu := range cpus {
		fd, err := OpenEvent(attr, tid, cpu, s[i])
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

// EachThread calls open with each thread of a process. A thread that begins later inherits the events of the thread
// that made it. So EachThread lists threads until no new one has come in between. If new threads come all the time,
// most of them inherit.
func EachThread(proc *procfs.Dir, open func(tid int) error) error {
	seen := map[int]bool{}
	for range 16 {
		var fresh []int
		proc.Threads(func(tid int) {
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

// SleepUntil sleeps until one of these descriptors has something, for the time most at most. It reports whether it
// ended sooner. Like ptrace.SleepUntil, it does not tell Go's scheduler.
func SleepUntil(polls []unix.PollFd, most *unix.Timespec) bool {
	for i := range polls {
		polls[i].Revents = 0
	}
	list, n, ts := unsafe.Pointer(unsafe.SliceData(polls)), uintptr(len(polls)), unsafe.Pointer(most)
	has, _, e := syscall.RawSyscall6(unix.SYS_PPOLL, uintptr(list), n, uintptr(ts), 0, 0, 0)
	return has != 0 || e != 0
}
