package vmstructs

// healthLayout has fields about heap, allocation and classes. None of them is essential: if an entry is absent, its
// value is not known. They are in gc/shared/collectedHeap.hpp, genCollectedHeap.hpp, space.hpp, gc/*/vmStructs_*.hpp,
// runtime/thread.hpp, threadLocalAllocBuffer.hpp, oops/klass.hpp, classfile/classLoaderData.hpp.
type healthLayout struct {
	threadCount uint64 `vm:"Threads._number_of_threads"`
	polling     uint64 `vm:"os._polling_page"`
	allocated   offset `vm:"Thread._allocated_bytes"`
	tlabStart   offset `vm:"Thread._tlab > ThreadLocalAllocBuffer._start"`
	tlabTop     offset `vm:"Thread._tlab > ThreadLocalAllocBuffer._top"`

	heap        uint64 `vm:"Universe._collectedHeap"`
	collections offset `vm:"CollectedHeap._total_collections"`
	// active: all threads are stopped for a collection.
	active   offset `vm:"CollectedHeap._is_stw_gc_active|CollectedHeap._is_gc_active"`
	reserved offset `vm:"CollectedHeap._reserved"` // a MemRegion
	start    offset `vm:"MemRegion._start"`
	words    offset `vm:"MemRegion._word_size"`

	serial       serialLayout
	parallel     parallelLayout
	g1           g1Layout
	z            zHeapLayout `prefix:"Z"`
	x            zHeapLayout `prefix:"X"`
	shenandoah   shenandoahLayout
	epsilon      offset `vm:"EpsilonHeap._space"`
	epsilonSpace offset `vm:"EpsilonHeap._virtual_space"`
	lowBoundary  offset `vm:"VirtualSpace._low_boundary"`

	finalizer   uint64 `vm:"class Finalizer"`          // up to 8
	reference   uint64 `vm:"class Reference"`          // up to 8
	loaderOf    offset `vm:"Klass._class_loader_data"` // since 9 or so
	klasses     offset `vm:"ClassLoaderData._klasses"`
	nextKlass   offset `vm:"Klass._next_link"`
	super       offset `vm:"Klass._super"`
	mirror      offset `vm:"Klass._java_mirror"`
	mirrorIsOop bool   // up to 8: mirror is the reference itself, not an OopHandle
}

// serialLayout is for Serial and all other collectors with GenCollectedHeap (up to 24), such as CMS.
type serialLayout struct {
	gens     offset `vm:"GenCollectedHeap._gens"` // up to 8: an array
	young    offset `vm:"SerialHeap._young_gen|GenCollectedHeap._young_gen"`
	old      offset `vm:"SerialHeap._old_gen|GenCollectedHeap._old_gen"`
	eden     offset `vm:"DefNewGeneration._eden_space"`
	from     offset `vm:"DefNewGeneration._from_space"`
	oldSpace offset `vm:"TenuredGeneration._the_space|OneContigSpaceCardGeneration._the_space"`
	bottom   offset `vm:"ContiguousSpace._bottom|Space._bottom"`
	top      offset `vm:"ContiguousSpace._top"`
	virtual  offset `vm:"Generation._virtual_space"`
}

type parallelLayout struct {
	youngAt      uint64 `vm:"ParallelScavengeHeap._young_gen"` // up to 26
	oldAt        uint64 `vm:"ParallelScavengeHeap._old_gen"`   // up to 26
	young        offset `vm:"ParallelScavengeHeap._young_gen"` // since 27
	old          offset `vm:"ParallelScavengeHeap._old_gen"`   // since 27
	eden         offset `vm:"PSYoungGen._eden_space"`
	from         offset `vm:"PSYoungGen._from_space"`
	youngVirtual offset `vm:"PSYoungGen._virtual_space"`
	youngMax     offset `vm:"PSYoungGen._max_gen_size"`
	oldSpace     offset `vm:"PSOldGen._object_space"`
	oldVirtual   offset `vm:"PSOldGen._virtual_space"`
	oldMax       offset `vm:"PSOldGen._max_gen_size"`
	bottom       offset `vm:"MutableSpace._bottom|ImmutableSpace._bottom"`
	top          offset `vm:"MutableSpace._top"`
	low          offset `vm:"PSVirtualSpace._committed_low_addr"`
	high         offset `vm:"PSVirtualSpace._committed_high_addr"`
}

type g1Layout struct {
	regions offset `vm:"G1CollectedHeap._hrm > HeapRegionManager._regions|G1HeapRegionManager._regions"` // a table
	length  offset `vm:"G1HeapRegionTable._length"`
	base    offset `vm:"G1HeapRegionTable._base"`
	bottom  offset `vm:"HeapRegion._bottom|G1HeapRegion._bottom|Space._bottom"`
	top     offset `vm:"HeapRegion._top|G1HeapRegion._top|G1ContiguousSpace._top|G1OffsetTableContigSpace._top"`
	end     offset `vm:"HeapRegion._end|G1HeapRegion._end|Space._end"`
	// kind exists since about 9.
	kind       offset   `vm:"HeapRegion._type|G1HeapRegion._type > HeapRegionType._tag|G1HeapRegionType._tag"`
	young      uint32   // bits of kind; 0: not known
	grain      uint64   `vm:"HeapRegion.GrainBytes|G1HeapRegion.GrainBytes"`
	oldSet     offset   // of G1CollectedHeap: the number of old regions
	bigSet     offset   // of G1CollectedHeap: the number of humongous regions
	monitoring offset   `vm:"G1CollectedHeap._monitoring_support|G1CollectedHeap._g1mm"`
	committed  []offset // of G1MonitoringSupport: of eden, survivors, old
}

// zHeapLayout has offsets from the heap. % is Z, in 21 to 23 X for the ZGC without generations.
type zHeapLayout struct {
	used     offset `vm:"%CollectedHeap._heap > %Heap._page_allocator > %PageAllocator._used"`
	capacity offset `vm:"%CollectedHeap._heap > %Heap._page_allocator > %PageAllocator._capacity"`
	max      offset `vm:"%CollectedHeap._heap > %Heap._page_allocator > %PageAllocator._max_capacity"`
	// parts is an array of partitions, as many as NUMA nodes (since 25).
	parts        offset `vm:"%CollectedHeap._heap > %Heap._page_allocator > %PageAllocator._partitions > %PerNUMA%Partition._addr"`
	nodes        uint64 `vm:"%NUMA._count"`
	partSize     uint64 `vm:"%Partition"`
	partUsed     offset `vm:"%Partition._used"`
	partCapacity offset `vm:"%Partition._capacity"`
}

type shenandoahLayout struct {
	used       offset `vm:"ShenandoahHeap._used"`
	committed  offset `vm:"ShenandoahHeap._committed"`
	holder     offset `vm:"ShenandoahHeap._global_generation"` // since 25: the object that has the used size
	holderUsed offset
}

// chain adds offsets of nested members. The result is absent if one of them is.
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
	l := fill[healthLayout](r, "")
	l.g1, l.shenandoah = r.g1(), r.shenandoah()
	l.mirrorIsOop = r.isOop("Klass._java_mirror")
	return l
}

// isOop reports whether an instance field is a reference itself, not an OopHandle.
func (r *resolver) isOop(name string) bool {
	f, _ := r.lookup(name, false)
	return f.typ == "oop"
}

func (r *resolver) g1() g1Layout {
	set := r.field("", "HeapRegionSetBase._length|G1HeapRegionSetBase._length")
	if !set.ok() { // 8
		set = chain(r.field("", "HeapRegionSetBase._count"), r.field("", "HeapRegionSetCount._length"))
	}
	l := fill[g1Layout](r, "")
	l.young = uint32(r.int("G1HeapRegionType::YoungMask", r.int("HeapRegionType::YoungMask", 0)))
	l.oldSet = chain(r.field("", "G1CollectedHeap._old_set"), set)
	l.bigSet = chain(r.field("", "G1CollectedHeap._humongous_set"), set)
	for _, names := range []string{
		"G1MonitoringSupport._eden_space_committed|G1MonitoringSupport._eden_committed",
		"G1MonitoringSupport._survivor_space_committed|G1MonitoringSupport._survivor_committed",
		"G1MonitoringSupport._old_gen_committed|G1MonitoringSupport._old_committed",
	} {
		l.committed = append(l.committed, r.field("", names))
	}
	return l
}

func (r *resolver) shenandoah() shenandoahLayout {
	l := fill[shenandoahLayout](r, "")
	l.holderUsed = r.field("", "ShenandoahGeneration._used")
	if !l.holder.ok() {
		l.holder = r.field("", "ShenandoahHeap._free_set")
		l.holderUsed = r.field("", "ShenandoahFreeSet._total_global_used")
	}
	return l
}
