package vmstructs

import "goprof/process"

// heapMoment counts the collections that stop all threads. In the middle of a full collection, references already lead
// to the future addresses of their objects (gc/parallel/psParallelCompact.cpp, adjust_roots;
// gc/serial/serialFullGC.cpp, phase 3). Until the objects have moved there, such a reference leads to something else,
// however often it is followed.
type heapMoment struct {
	count uint64 // collections so far
	quiet bool   // no collection was under way
}

// heapReads is scratch memory for heapMoment.
type heapReads struct {
	at             uint64 // Universe::_collectedHeap; 0: not read yet
	count, stopped [8]byte
	ranges         [2]process.Range
}

// heapMoment returns the present moment. If a JVM does not export its collections, the moment counts as quiet.
func (vm *VM) heapMoment() heapMoment {
	l, r := &vm.l.locks, &vm.heapReads
	if l.heap == 0 || !l.stopped.ok() || !l.count.ok() {
		return heapMoment{quiet: true}
	}
	if r.at == 0 {
		if r.at, _ = vm.mem.Ptr(l.heap); r.at == 0 {
			return heapMoment{quiet: true}
		}
	}
	// The JVM first sets the flag, and then counts (PSParallelCompact::invoke and similar functions). goprof reads the
	// count first. So a collection that begins between the two reads is counted later.
	r.ranges = [2]process.Range{
		{Addr: r.at + uint64(l.count.offset), Buf: r.count[:l.count.width]},
		{Addr: r.at + uint64(l.stopped.offset), Buf: r.stopped[:l.stopped.width]},
	}
	vm.t.ReadMany(r.ranges[:])
	if !r.ranges[0].OK || !r.ranges[1].OK {
		return heapMoment{quiet: true}
	}
	return heapMoment{count: word(r.count[:]), quiet: word(r.stopped[:]) == 0}
}

// nothingMoved reports whether no collection has stopped the threads since a moment.
func (vm *VM) nothingMoved(since heapMoment) bool {
	return since.quiet && vm.heapMoment() == since
}

// Collecting reports whether a collection stops the threads now. During that time, ThreadName, ThreadStatus and
// ThreadFacts return ErrMoved.
func (vm *VM) Collecting() bool { return !vm.heapMoment().quiet }
