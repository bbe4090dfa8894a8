//go:build linux

package sampler

import (
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

// openRing makes a ring of size bytes, or of as many fewer as we may have. A process without CAP_IPC_LOCK and
// CAP_PERFMON may lock 516 KB for each CPU, beside RLIMIT_MEMLOCK (kernel.perf_event_mlock_kb).
func openRing(cpu, size, least int, attr *unix.PerfEventAttr) (*perfRing, error) {
	fd, err := unix.PerfEventOpen(attr, 0, cpu, -1, unix.PERF_FLAG_FD_CLOEXEC)
	if err != nil {
		return nil, &PerfError{"perf_event_open", err}
	}
	page := os.Getpagesize()
	for ; ; size /= 2 {
		mem, err := lockedRings.mmap(fd, page+size)
		if err == nil {
			return &perfRing{
				fd: fd, mem: mem, data: ringBytes(mem[page:]),
				head: (*uint64)(unsafe.Pointer(&mem[mmapPageHead])),
				tail: (*uint64)(unsafe.Pointer(&mem[mmapPageTail])),
			}, nil
		}
		if size <= least {
			unix.Close(fd)
			return nil, &PerfError{"mmap", err}
		}
	}
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
