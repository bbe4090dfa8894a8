//go:build linux

package ring

import (
	"errors"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"goprof/sampler/cpuset"
)

// How much memory the rings have. It is memory of the kernel that is never paged out. The kernel wants a ring for each
// CPU (kernel/events/core.c, perf_event_set_output). So with more CPUs each ring is smaller, and the rings of a run
// together stay within ringsTotal up to 1,024 CPUs. All runs together stay within ringsMost: an agent may record
// hundreds of JVMs.

const (
	ringsTotal   = 64 << 20  // of a set of rings: those of one run, or those of its threads with Hint.Soon
	ringsMost    = 256 << 20 // of all rings of this goprof, at least
	Most         = 4 << 20   // of one ring of CPU time
	MostOfEvents = 16 << 20  // of one ring of events and of switches: copies of stacks have their full size there
	// Least is what a ring shrinks to where the kernel refuses more, and Floor what it shrinks to with many CPUs. A ring
	// has 2^n pages, and so no less than the largest page of Linux.
	Least = 256 << 10
	Floor = 64 << 10
)

// Share is how large a ring may be for a number of CPUs.
func Share(cpus, most int) int {
	size := most
	for size > Floor && size*cpus > ringsTotal {
		size /= 2
	}
	return size
}

// StackFor is how much of a stack is copied into rings of that size: a record fits into half a ring, with the
// registers and what else it has.
func StackFor(size int) int { return min(MostStack, size/2-4<<10) }

// MostCopied is how much of a stack is copied for samples of CPU time on this machine.
func MostCopied() int { return StackFor(Share(len(cpuset.Online()), Most)) }

// ErrRingsFull: all rings together would lock more memory than goprof allows itself.
var ErrFull = errors.New("sampler: the rings of perf events have all the memory that goprof allows them")

type ringRoom struct{ locked atomic.Int64 }

var lockedRings ringRoom

// RingsMost is how much memory all rings of this goprof may lock: 256 MB, or a 256th of the machine's memory.
func MostLocked() int64 {
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) != nil {
		return ringsMost
	}
	return max(ringsMost, int64(uint64(info.Totalram)*uint64(info.Unit)/256))
}

// mmap maps a ring, if there is room.
func (m *ringRoom) mmap(fd, size int) ([]byte, error) {
	if m.locked.Add(int64(size)) > MostLocked() {
		m.locked.Add(-int64(size))
		return nil, ErrFull
	}
	mem, err := unix.Mmap(fd, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		m.locked.Add(-int64(size))
	}
	return mem, err
}

func (m *ringRoom) munmap(mem []byte) {
	unix.Munmap(mem)
	m.locked.Add(-int64(len(mem)))
}

// TryRings finds out whether the kernel gives goprof rings of the size that a recording wants. It maps them. all is
// what a recording locks at most: threads with Hint.Soon have rings of their own.
func TryRings() (one, wanted int, all int64, err error) {
	cpus := cpuset.Online()
	wanted = Share(len(cpus), Most)
	rings, err := Open(cpus, wanted, min(Least, wanted))
	for _, ring := range rings {
		one, all = len(ring.Data), all+2*int64(len(ring.mem))
		ring.close()
	}
	return one, wanted, all, err
}
