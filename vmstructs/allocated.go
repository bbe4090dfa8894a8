package vmstructs

import (
	"goprof/process"
	"goprof/process/maybe"
)

const (
	maxAllocated = 1 << 62 // more than any thread allocates
	maxTLAB      = 1 << 35 // of a thread's buffer; HotSpot allows 16 GB
	// allocatedTries bounds the attempts to get two equal readings of a thread's numbers.
	allocatedTries = 3
	allocatedBytes = 24 // of a thread: the count, and the start and top of its buffer
)

// Allocations reads how many bytes threads have allocated. It has its own scratch memory; see Health.
type Allocations struct {
	vm     *VM
	ranges []process.Range
}

func (vm *VM) NewAllocations() *Allocations { return &Allocations{vm: vm} }

// Known reports whether this JVM exports how many bytes threads have allocated.
func (a *Allocations) Known() bool { return a.vm.l.health.allocated.ok() }

// Allocated is Allocations.Of.
func (h *Health) Allocated(threads []Thread) []maybe.Value[uint64] { return h.allocations.Of(threads) }

// Of returns how many bytes each of the threads has allocated since it began, as
// com.sun.management.ThreadMXBean.getThreadAllocatedBytes does (Thread::cooked_allocated_bytes). It adds the filled
// part of all buffers (TLABs) that the thread has given back, and of its present one.
//
// A thread first adds its buffer to the count, and then gives up the buffer. So Of reads again if the count or the
// buffer's start has changed during the reading.
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

// someOf is Of for one batch of threads.
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

// cookedAllocated adds the used part of a thread's buffer, from start to top, to its count.
func cookedAllocated(count, start, top uint64) maybe.Value[uint64] {
	if top > start && start != 0 && top-start <= maxTLAB {
		count += top - start
	}
	return maybe.If(count, count <= maxAllocated)
}

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

// AllocationTop is the offset in a thread of the address up to which its buffer is filled. It is 0 if not known.
func (vm *VM) AllocationTop() int32 {
	if top := vm.l.health.tlabTop; top.ok() {
		return int32(top)
	}
	return 0
}

// AllocationCounts returns the offset in a thread of the number of bytes it has allocated (see Allocations.Of), and the
// address of the number of collections. ok is false if this JVM does not export them.
func (vm *VM) AllocationCounts() (allocated int32, collections uint64, ok bool) {
	l := &vm.l.health
	if l.heap == 0 || !l.collections.ok() || !l.allocated.ok() {
		return 0, 0, false
	}
	heap := vm.pointer(l.heap, 0)
	return int32(l.allocated), heap + uint64(l.collections), heap != 0
}
