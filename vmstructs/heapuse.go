package vmstructs

import "goprof/process/maybe"

const (
	// maxHeapBytes is more than any heap can have (ZGC: 16 TB).
	maxHeapBytes = 1 << 46
	// regionBatch is the number of regions that are read with one call. maxRegionSpan bounds the bytes of each.
	regionBatch   = 512
	maxRegionSpan = 1024
	// maxNodes bounds the number of ZGC's partitions.
	maxNodes = 1 << 10
)

// Amount is an amount of memory in bytes, and its limit.
type Amount struct{ Used, Committed, Max maybe.Value[uint64] }

// HeapUse is the present use of the heap.
type HeapUse struct {
	Heap       Amount
	Young, Old Amount // not known for ZGC, and for collectors without generations
	// Collections counts all collections since the JVM began (CollectedHeap::_total_collections).
	Collections maybe.Value[uint64]
	Active      maybe.Value[bool] // all threads are stopped for a collection now
}

func (h *Health) Heap() (u HeapUse) {
	l := &h.vm.l.health
	heap := h.pointerAt(l.heap, 0)
	if heap == 0 {
		return u
	}
	if l.collections.ok() {
		n, err := h.vm.mem.U32(heap + uint64(l.collections))
		u.Collections = maybe.If(uint64(n), err == nil)
	}
	if l.active.ok() {
		b, err := h.vm.mem.U8(heap + uint64(l.active))
		u.Active = maybe.If(b == 1, err == nil && b <= 1)
	}
	switch h.vm.Collector() {
	case "Serial", "CMS":
		h.serialHeap(heap, &u)
	case "Parallel":
		h.parallelHeap(heap, &u)
	case "G1":
		h.g1Heap(heap, &u)
	case "ZGC":
		h.zHeap(heap, &u)
	case "Shenandoah":
		h.shenandoahHeap(heap, &u)
	case "Epsilon":
		h.epsilonHeap(heap, &u)
	}
	if limit := h.vm.maxHeap(); limit > 0 {
		u.Heap.Max = maybe.Known(limit)
	}
	return u
}

// HeapRange returns the address space that is reserved for the heap (CollectedHeap::_reserved). ZGC leaves it empty.
func (h *Health) HeapRange() (start, end uint64, ok bool) {
	l := &h.vm.l.health
	heap := h.pointerAt(l.heap, 0)
	start = h.pointerAt(heap, chain(l.reserved, l.start))
	size, ok := h.sizeAt(heap, chain(l.reserved, l.words)).Get()
	size *= 8 // it is in words
	return start, start + size, ok && start != 0 && size > 0 && size <= maxHeapBytes && start+size > start
}

// serialHeap reads the heaps of Serial and CMS. CMS has its old generation in a space of free lists. The tables do not
// show how full that space is.
func (h *Health) serialHeap(heap uint64, u *HeapUse) {
	l := &h.vm.l.health.serial
	young, old := h.serialGenerations(heap)
	used := func(generation uint64, space offset) maybe.Value[uint64] {
		return h.between(h.pointerAt(generation, space), l.bottom, l.top)
	}
	u.Young.Used = sum(used(young, l.eden), used(young, l.from))
	h.generation(young, &u.Young)
	h.generation(old, &u.Old)
	u.Heap.Committed = sum(u.Young.Committed, u.Old.Committed)
	if h.vm.Collector() == "Serial" {
		u.Old.Used = used(old, l.oldSpace)
		u.Heap.Used = sum(u.Young.Used, u.Old.Used)
	}
}

func (h *Health) serialGenerations(heap uint64) (young, old uint64) {
	l := &h.vm.l.health.serial
	if l.gens.ok() { // 8: an array of pointers in the heap itself
		return h.pointerAt(heap, l.gens), h.pointerAt(heap, l.gens+8)
	}
	return h.pointerAt(heap, l.young), h.pointerAt(heap, l.old)
}

func (h *Health) parallelGenerations(heap uint64) (young, old uint64) {
	l := &h.vm.l.health.parallel
	if l.youngAt != 0 && l.oldAt != 0 {
		return h.pointerAt(l.youngAt, 0), h.pointerAt(l.oldAt, 0)
	}
	return h.pointerAt(heap, l.young), h.pointerAt(heap, l.old)
}

func (h *Health) generation(generation uint64, a *Amount) {
	l, code := &h.vm.l.health, &h.vm.l.code
	virtual := l.serial.virtual
	a.Committed = h.between(generation, chain(virtual, code.low), chain(virtual, code.high))
	a.Max = h.between(generation, chain(virtual, l.lowBoundary), chain(virtual, code.highBoundary))
}

func (h *Health) parallelHeap(heap uint64, u *HeapUse) {
	l := &h.vm.l.health.parallel
	young, old := h.parallelGenerations(heap)
	used := func(generation uint64, space offset) maybe.Value[uint64] {
		return h.between(h.pointerAt(generation, space), l.bottom, l.top)
	}
	u.Young.Used = sum(used(young, l.eden), used(young, l.from))
	u.Old.Used = used(old, l.oldSpace)
	u.Young.Committed = h.between(h.pointerAt(young, l.youngVirtual), l.low, l.high)
	u.Old.Committed = h.between(h.pointerAt(old, l.oldVirtual), l.low, l.high)
	u.Young.Max, u.Old.Max = h.sizeAt(young, l.youngMax), h.sizeAt(old, l.oldMax)
	u.Heap.Used = sum(u.Young.Used, u.Old.Used)
	u.Heap.Committed = sum(u.Young.Committed, u.Old.Committed)
}

// g1Heap adds up the used memory of the regions, which change during the reading.
func (h *Health) g1Heap(heap uint64, u *HeapUse) {
	l := &h.vm.l.health.g1
	all, young, ok := h.g1Regions(heap)
	u.Heap.Used = maybe.If(all, ok)
	if ok && l.kind.ok() && l.young != 0 {
		u.Young.Used, u.Old.Used = maybe.Known(young), maybe.Known(all-young)
	} else if ok { // 8: by the numbers of regions
		u.Old.Used = h.g1OldRegions(heap)
		if old, known := u.Old.Used.Get(); known {
			u.Young.Used = maybe.Known(all - min(all, old))
		}
	}
	monitoring := h.pointerAt(heap, l.monitoring)
	var parts []maybe.Value[uint64]
	for _, part := range l.committed {
		parts = append(parts, h.sizeAt(monitoring, part))
	}
	u.Heap.Committed, u.Young.Committed, u.Old.Committed = sum(parts...), sum(parts[:2]...), parts[2]
	limit := h.vm.maxHeap() // each generation may use the whole heap
	u.Old.Max = maybe.If(limit, limit > 0)
}

// g1OldRegions returns the total size of the old and the humongous regions.
func (h *Health) g1OldRegions(heap uint64) maybe.Value[uint64] {
	l := &h.vm.l.health.g1
	if !l.oldSet.ok() || !l.bigSet.ok() || l.grain == 0 {
		return maybe.Value[uint64]{}
	}
	old, err1 := h.vm.mem.U32(heap + uint64(l.oldSet))
	big, err2 := h.vm.mem.U32(heap + uint64(l.bigSet))
	grain, err3 := h.vm.mem.U64(l.grain)
	ok := err1 == nil && err2 == nil && err3 == nil && max(old, big) <= maxAreas && grain <= maxHeapBytes/maxAreas
	return maybe.If((uint64(old)+uint64(big))*grain, ok)
}

// g1Regions adds up the used memory of all regions, and of the young regions.
func (h *Health) g1Regions(heap uint64) (all, young uint64, ok bool) {
	l := &h.vm.l.health.g1
	whole, err := h.eachG1Region(heap, func(r regionRow) {
		all += r.top - r.bottom
		if l.kind.ok() && r.tag&l.young != 0 {
			young += r.top - r.bottom
		}
	})
	return all, young, err == nil && whole && all <= maxHeapBytes
}

// zHeap reads how full ZGC's heap is, with or without generations.
func (h *Health) zHeap(heap uint64, u *HeapUse) {
	l := &h.vm.l.health.z
	if x := &h.vm.l.health.x; x.used.ok() && !h.vm.flagOn("ZGenerational") {
		l = x
	}
	u.Heap.Max = h.sizeAt(heap, l.max)
	if l.used.ok() {
		u.Heap.Used, u.Heap.Committed = h.sizeAt(heap, l.used), h.sizeAt(heap, l.capacity)
		return
	}
	if !l.parts.ok() || l.nodes == 0 || l.partSize == 0 {
		return
	}
	nodes, err := h.vm.mem.U32(l.nodes)
	parts := h.pointerAt(heap, l.parts)
	if err != nil || nodes == 0 || nodes > maxNodes || parts == 0 {
		return
	}
	used, committed := maybe.Known(uint64(0)), maybe.Known(uint64(0))
	for i := range uint64(nodes) {
		part := parts + i*l.partSize
		used = sum(used, h.sizeAt(part, l.partUsed))
		committed = sum(committed, h.sizeAt(part, l.partCapacity))
	}
	u.Heap.Used, u.Heap.Committed = used, committed
}

func (h *Health) shenandoahHeap(heap uint64, u *HeapUse) {
	l := &h.vm.l.health.shenandoah
	u.Heap.Committed = h.sizeAt(heap, l.committed)
	if l.used.ok() {
		u.Heap.Used = h.sizeAt(heap, l.used)
	} else {
		u.Heap.Used = h.sizeAt(h.pointerAt(heap, l.holder), l.holderUsed)
	}
}

func (h *Health) epsilonHeap(heap uint64, u *HeapUse) {
	l, code := &h.vm.l.health, &h.vm.l.code
	u.Heap.Used = h.between(h.pointerAt(heap, l.epsilon), l.serial.bottom, l.serial.top)
	u.Heap.Committed = h.between(heap, chain(l.epsilonSpace, code.low), chain(l.epsilonSpace, code.high))
}
