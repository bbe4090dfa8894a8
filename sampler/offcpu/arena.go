//go:build linux

package offcpu

import "golang.org/x/sys/unix"

// An arena holds the stacks that one reading of the rings has copied. If goprof had no CPU for a while, these are tens
// of megabytes. In Go's heap they would exceed the memory goal (session.MemoryGoal). Then goprof would spend its CPU
// time on garbage collection, and fall behind further.
type arena struct {
	mem  []byte // address space for the largest need; the kernel allocates a page when it is written
	used int
	most int // the largest use since memory was given back
}

// arenaKept is how many bytes stay allocated for the next reading.
const arenaKept = 4 << 20

func newArena(size int) (arena, error) {
	mem, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE)
	return arena{mem: mem}, err
}

// take returns room for n bytes, nil if there is not enough.
func (a *arena) take(n int) []byte {
	if n > len(a.mem)-a.used {
		return nil
	}
	from := a.used
	a.used += n
	return a.mem[from:a.used:a.used]
}

// empty frees all room. Memory that was taken before must no longer be used.
func (a *arena) empty() {
	a.most, a.used = max(a.most, a.used), 0
	if a.most > arenaKept {
		unix.Madvise(a.mem[arenaKept:], unix.MADV_DONTNEED)
		a.most = 0
	}
}

func (a *arena) close() {
	if a.mem != nil {
		unix.Munmap(a.mem)
		a.mem = nil
	}
}
