package vmstructs

// healthLayout has fields about heap, allocation and classes. None of them is essential: if an entry is absent, its
// value is not known. They are in gc/shared/collectedHeap.hpp, genCollectedHeap.hpp, space.hpp, gc/*/vmStructs_*.hpp,
// runtime/thread.hpp, threadLocalAllocBuffer.hpp, oops/klass.hpp, classfile/classLoaderData.hpp.
type healthLayout struct {
	threadCount uint64 // Threads::_number_of_threads
	polling     uint64 // os::_polling_page
	allocated   offset // Thread
	tlabStart   offset // of Thread, through its ThreadLocalAllocBuffer
	tlabTop     offset

	heap        uint64 // Universe::_collectedHeap
	collections offset // CollectedHeap
	active      offset // a collection stops all threads now
	reserved    offset // MemRegion

	start, words offset // MemRegion
	serial       serialLayout
	parallel     parallelLayout
	g1           g1Layout
	z, x         zHeapLayout
	shenandoah   shenandoahLayout
	epsilon      offset // EpsilonHeap._space
	epsilonSpace offset // EpsilonHeap._virtual_space

	lowBoundary offset // VirtualSpace

	finalizer   uint64 // well-known classes, up to 8
	reference   uint64
	loaderOf    offset // Klass._class_loader_data, since 9 or so
	klasses     offset // ClassLoaderData
	nextKlass   offset
	super       offset // Klass
	mirror      offset
	mirrorIsOop bool // up to 8: the reference itself, no OopHandle
}

// serialLayout is Serial's, and that of all collectors with GenCollectedHeap (up to 24): CMS, too.
type serialLayout struct {
	gens        offset // GenCollectedHeap, 8: an array
	young, old  offset // since 9
	eden, from  offset // DefNewGeneration
	oldSpace    offset // TenuredGeneration, OneContigSpaceCardGeneration
	bottom, top offset // ContiguousSpace
	virtual     offset // Generation: its VirtualSpace
}

type parallelLayout struct {
	youngAt, oldAt               uint64 // up to 26
	young, old                   offset // since 27
	eden, from                   offset
	youngVirtual, youngMax       offset
	oldSpace, oldVirtual, oldMax offset
	bottom, top                  offset // MutableSpace
	low, high                    offset // PSVirtualSpace
}

type g1Layout struct {
	regions          offset // of G1CollectedHeap: the table of regions
	length, base     offset // of that table
	bottom, top, end offset // HeapRegion
	kind             offset // its tag, since 9 or so
	young            uint32 // bits of the tag; 0: not known
	grain            uint64 // HeapRegion::GrainBytes
	oldSet, bigSet   offset // of G1CollectedHeap: how many regions are old, and humongous
	monitoring       offset
	committed        []offset // of G1MonitoringSupport: of eden, survivors, old
}

// zHeapLayout: offsets from the heap.
type zHeapLayout struct {
	used, capacity, max offset
	parts               offset // since 25: an array of partitions, as many as NUMA nodes
	nodes               uint64
	partSize            uint64
	partUsed            offset
	partCapacity        offset
}

type shenandoahLayout struct {
	used, committed offset
	holder          offset // since 25: the object that knows how much is used
	holderUsed      offset
}

// chain adds offsets of members within members; absent if one of them is.
func chain(offsets ...offset) offset {
	sum := offset(0)
	for _, o := range offsets {
		if !o.ok() {
			return absent
		}
		sum += o
	}
	return sum
}

func (r *resolver) health() healthLayout {
	tlab := r.field("", "Thread._tlab")
	l := healthLayout{
		threadCount: r.static("", "Threads._number_of_threads"),
		polling:     r.static("", "os._polling_page"),
		allocated:   r.field("", "Thread._allocated_bytes"),
		tlabStart:   chain(tlab, r.field("", "ThreadLocalAllocBuffer._start")),
		tlabTop:     chain(tlab, r.field("", "ThreadLocalAllocBuffer._top")),

		heap:        r.static("", "Universe._collectedHeap"),
		collections: r.field("", "CollectedHeap._total_collections"),
		active:      r.field("", "CollectedHeap._is_stw_gc_active|CollectedHeap._is_gc_active"),
		reserved:    r.field("", "CollectedHeap._reserved"),
		start:       r.field("", "MemRegion._start"),
		words:       r.field("", "MemRegion._word_size"),

		serial:       r.serial(),
		parallel:     r.parallel(),
		g1:           r.g1(),
		z:            r.zHeap("Z"),
		x:            r.zHeap("X"),
		shenandoah:   r.shenandoah(),
		epsilon:      r.field("", "EpsilonHeap._space"),
		epsilonSpace: r.field("", "EpsilonHeap._virtual_space"),
		lowBoundary:  r.field("", "VirtualSpace._low_boundary"),

		finalizer: r.static("", wellKnown("Finalizer")),
		reference: r.static("", wellKnown("Reference")),
		loaderOf:  r.field("", "Klass._class_loader_data"),
		klasses:   r.field("", "ClassLoaderData._klasses"),
		nextKlass: r.field("", "Klass._next_link"),
		super:     r.field("", "Klass._super"),
		mirror:    r.field("", "Klass._java_mirror"),
	}
	if f, ok := r.lookup("Klass._java_mirror", false); ok {
		l.mirrorIsOop = f.typ == "oop"
	}
	return l
}

func (r *resolver) serial() serialLayout {
	return serialLayout{
		gens:     r.field("", "GenCollectedHeap._gens"),
		young:    r.field("", "SerialHeap._young_gen|GenCollectedHeap._young_gen"),
		old:      r.field("", "SerialHeap._old_gen|GenCollectedHeap._old_gen"),
		eden:     r.field("", "DefNewGeneration._eden_space"),
		from:     r.field("", "DefNewGeneration._from_space"),
		oldSpace: r.field("", "TenuredGeneration._the_space|OneContigSpaceCardGeneration._the_space"),
		bottom:   r.field("", "ContiguousSpace._bottom|Space._bottom"),
		top:      r.field("", "ContiguousSpace._top"),
		virtual:  r.field("", "Generation._virtual_space"),
	}
}

func (r *resolver) parallel() parallelLayout {
	return parallelLayout{
		youngAt:      r.static("", "ParallelScavengeHeap._young_gen"),
		oldAt:        r.static("", "ParallelScavengeHeap._old_gen"),
		young:        r.field("", "ParallelScavengeHeap._young_gen"),
		old:          r.field("", "ParallelScavengeHeap._old_gen"),
		eden:         r.field("", "PSYoungGen._eden_space"),
		from:         r.field("", "PSYoungGen._from_space"),
		youngVirtual: r.field("", "PSYoungGen._virtual_space"),
		youngMax:     r.field("", "PSYoungGen._max_gen_size"),
		oldSpace:     r.field("", "PSOldGen._object_space"),
		oldVirtual:   r.field("", "PSOldGen._virtual_space"),
		oldMax:       r.field("", "PSOldGen._max_gen_size"),
		bottom:       r.field("", "MutableSpace._bottom|ImmutableSpace._bottom"),
		top:          r.field("", "MutableSpace._top"),
		low:          r.field("", "PSVirtualSpace._committed_low_addr"),
		high:         r.field("", "PSVirtualSpace._committed_high_addr"),
	}
}

func (r *resolver) g1() g1Layout {
	regions := r.field("", "HeapRegionManager._regions|G1HeapRegionManager._regions")
	set := r.field("", "HeapRegionSetBase._length|G1HeapRegionSetBase._length")
	if !set.ok() { // 8
		set = chain(r.field("", "HeapRegionSetBase._count"), r.field("", "HeapRegionSetCount._length"))
	}
	l := g1Layout{
		regions: chain(r.field("", "G1CollectedHeap._hrm"), regions),
		length:  r.field("", "G1HeapRegionTable._length"),
		base:    r.field("", "G1HeapRegionTable._base"),
		bottom:  r.field("", "HeapRegion._bottom|G1HeapRegion._bottom|Space._bottom"),
		top: r.field("", "HeapRegion._top|G1HeapRegion._top|G1ContiguousSpace._top|"+
			"G1OffsetTableContigSpace._top"),
		end: r.field("", "HeapRegion._end|G1HeapRegion._end|Space._end"),
		kind: chain(r.field("", "HeapRegion._type|G1HeapRegion._type"),
			r.field("", "HeapRegionType._tag|G1HeapRegionType._tag")),
		young:      uint32(r.int("G1HeapRegionType::YoungMask", r.int("HeapRegionType::YoungMask", 0))),
		grain:      r.static("", "HeapRegion.GrainBytes|G1HeapRegion.GrainBytes"),
		oldSet:     chain(r.field("", "G1CollectedHeap._old_set"), set),
		bigSet:     chain(r.field("", "G1CollectedHeap._humongous_set"), set),
		monitoring: r.field("", "G1CollectedHeap._monitoring_support|G1CollectedHeap._g1mm"),
	}
	for _, names := range []string{
		"G1MonitoringSupport._eden_space_committed|G1MonitoringSupport._eden_committed",
		"G1MonitoringSupport._survivor_space_committed|G1MonitoringSupport._survivor_committed",
		"G1MonitoringSupport._old_gen_committed|G1MonitoringSupport._old_committed",
	} {
		l.committed = append(l.committed, r.field("", names))
	}
	return l
}

// zHeap: z is the prefix of the types. In 21 to 23 those of the ZGC without generations begin with X.
func (r *resolver) zHeap(z string) zHeapLayout {
	pages := chain(r.field("", z+"CollectedHeap._heap"), r.field("", z+"Heap._page_allocator"))
	return zHeapLayout{
		used:     chain(pages, r.field("", z+"PageAllocator._used")),
		capacity: chain(pages, r.field("", z+"PageAllocator._capacity")),
		max:      chain(pages, r.field("", z+"PageAllocator._max_capacity")),
		parts: chain(pages, r.field("", z+"PageAllocator._partitions"),
			r.field("", z+"PerNUMA"+z+"Partition._addr")),
		nodes:        r.static("", z+"NUMA._count"),
		partSize:     r.size("", z+"Partition"),
		partUsed:     r.field("", z+"Partition._used"),
		partCapacity: r.field("", z+"Partition._capacity"),
	}
}

func (r *resolver) shenandoah() shenandoahLayout {
	l := shenandoahLayout{
		used:      r.field("", "ShenandoahHeap._used"),
		committed: r.field("", "ShenandoahHeap._committed"),
		holder:    r.field("", "ShenandoahHeap._global_generation"),
	}
	l.holderUsed = r.field("", "ShenandoahGeneration._used")
	if !l.holder.ok() {
		l.holder = r.field("", "ShenandoahHeap._free_set")
		l.holderUsed = r.field("", "ShenandoahFreeSet._total_global_used")
	}
	return l
}
