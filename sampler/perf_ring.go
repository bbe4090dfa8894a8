//go:build linux

package sampler

import (
	"errors"
	"os"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
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

	samples uint64 // that were read so far
}

// The offsets of data_head and data_tail in struct perf_event_mmap_page (include/uapi/linux/perf_event.h).
const (
	mmapPageHead = 1024
	mmapPageTail = 1032
)

// openRing makes a ring of size bytes.
func openRing(cpu, size int, attr *unix.PerfEventAttr) (*perfRing, error) {
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

// openRingSet makes a ring of size bytes for each of these CPUs, or rings of as many fewer as we may have, but not
// fewer than least. All have the same size: what a process without CAP_IPC_LOCK may lock is one sum for all rings of
// its user (kernel/events/core.c, perf_mmap: kernel.perf_event_mlock_kb, 516, for each CPU, and RLIMIT_MEMLOCK).
func openRingSet(cpus []int, size, least int) (rings []*perfRing, err error) {
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
		for _, ring := range rings {
			ring.close()
		}
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

// read calls each with every record that there is, in order. The record lies in the ring: it is gone when each returns.
//
// Go's atomic loads and stores order the code around them. So records are not read before the head that says that they
// are whole. They are not given back before they were read (kernel/events/ring_buffer.c, perf_output_put_handle).
func (r *perfRing) read(each func(b ringBytes, rec perfRecord)) (damaged bool) {
	head, tail := atomic.LoadUint64(r.head), *r.tail
	for tail != head {
		rec, ok := r.data.next(tail, head)
		if !ok {
			atomic.StoreUint64(r.tail, head)
			return true
		}
		if rec.kind == perfSample {
			r.samples++
		}
		each(r.data, rec)
		tail = rec.end
		atomic.StoreUint64(r.tail, tail) // soon: the next sample may need the room
	}
	return false
}
