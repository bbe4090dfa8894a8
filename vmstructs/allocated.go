package vmstructs

import (
	"goprof/process"
	"goprof/process/maybe"
)

const (
	// maxAllocated is more than any thread allocates.
	maxAllocated = 1 << 62
	// maxTLAB bounds how large a thread's buffer is believed to be; HotSpot allows 16 GB.
	maxTLAB = 1 << 35
	// allocatedTries bounds how often a thread's numbers are read until two readings are the same.
	allocatedTries = 3
	// allocatedBytes is how much is read of one thread: the count, where its buffer begins, and how far the buffer is
	// filled.
	allocatedBytes = 24
)

// Allocations reads how much threads have allocated. It has scratch memory of its own; see Health.
type Allocations struct {
	vm     *VM
	ranges []process.Range
}

// NewAllocations returns a reader of what threads have allocated.
func (vm *VM) NewAllocations() *Allocations { return &Allocations{vm: vm} }

// Known reports whether this JVM's structures say what threads have allocated.
func (a *Allocations) Known() bool { return a.vm.l.health.allocated.ok() }

// Allocated is Allocations.Of.
func (h *Health) Allocated(threads []Thread) []maybe.Value[uint64] { return h.allocations.Of(threads) }

// Of returns how many bytes each of the threads has allocated since it began, as
// com.sun.management.ThreadMXBean.getThreadAllocatedBytes does (Thread::cooked_allocated_bytes): the filled part of all
// buffers (TLABs) that the thread has given back, and of its present one.
//
// A thread adds its buffer to the count, and forgets the buffer a moment later. So Of reads again if the count or the
// buffer's beginning changed meanwhile. The buffer's end may move.
func (a *Allocations) Of(threads []Thread) []maybe.Value[uint64] {
	out := make([]maybe.Value[uint64], len(threads))
	l := &a.vm.l.health
	if !l.allocated.ok() {
		return out
	}
	for from := 0; from < len(threads); from += threadBatch {
		to := min(from+threadBatch, len(threads))
		a.someOf(threads[from:to], out[from:to])
	}
	return out
}

// someOf is Of for some threads.
func (a *Allocations) someOf(threads []Thread, out []maybe.Value[uint64]) {
	var now, before [threadBatch][allocatedBytes]byte
	good := a.read(threads, &before)
	for range allocatedTries {
		again := a.read(threads, &now)
		open := false
		for i := range threads {
			if out[i].IsKnown() {
				continue
			}
			if !good[i] || !again[i] || string(now[i][:16]) != string(before[i][:16]) {
				open = true
				continue
			}
			out[i] = cookedAllocated(word(now[i][0:]), word(now[i][8:]), word(now[i][16:]))
		}
		if !open {
			return
		}
		before, good = now, again
	}
}

// cookedAllocated adds what a thread has used of its buffer, which begins at start and is used up to top.
func cookedAllocated(count, start, top uint64) maybe.Value[uint64] {
	if top > start && start != 0 && top-start <= maxTLAB {
		count += top - start
	}
	return maybe.If(count, count <= maxAllocated)
}

// read reads count, start and top of each thread.
func (a *Allocations) read(threads []Thread, into *[threadBatch][allocatedBytes]byte) (ok [threadBatch]bool) {
	l := &a.vm.l.health
	fields := []offset{l.allocated}
	if l.tlabStart.ok() && l.tlabTop.ok() {
		fields = append(fields, l.tlabStart, l.tlabTop)
	}
	a.ranges = a.ranges[:0]
	for i := range threads {
		clear(into[i][:])
		for k, f := range fields {
			a.ranges = append(a.ranges, process.Range{Addr: threads[i].Addr + uint64(f), Buf: into[i][8*k : 8*k+8]})
		}
	}
	a.vm.t.ReadMany(a.ranges)
	for i := range threads {
		ok[i] = true
		for k := range fields {
			ok[i] = ok[i] && a.ranges[i*len(fields)+k].OK
		}
	}
	return ok
}

// AllocationTop is where a thread keeps how far its buffer is filled, 0 if that is not known.
func (vm *VM) AllocationTop() int32 {
	if top := vm.l.health.tlabTop; top.ok() {
		return int32(top)
	}
	return 0
}

// AllocationCounts says where a thread keeps how much it has allocated (see Allocations.Of), counted from the thread,
// and where the JVM keeps how many collections there were. ok is false if this JVM does not tell.
func (vm *VM) AllocationCounts() (allocated int32, collections uint64, ok bool) {
	l := &vm.l.health
	if l.heap == 0 || !l.collections.ok() || !l.allocated.ok() {
		return 0, 0, false
	}
	heap, err := vm.mem.Ptr(l.heap)
	if err != nil || heap == 0 {
		return 0, 0, false
	}
	return int32(l.allocated), heap + uint64(l.collections), true
}
