package vmstructs

// areasLayout has the fields that are needed to find the heap's areas, in addition to healthLayout. All of them are
// optional: if the areas are not known, the heap is not read.
//
// gc/g1/heapRegionType.hpp (g1HeapRegionType.hpp since 24), gc/shared/threadLocalAllocBuffer.hpp,
// gc/shenandoah/shenandoahHeapRegion.hpp, gc/z/zPage.hpp.
type areasLayout struct {
	tlab     tlabLayout
	big      uint32 // G1: the bit of a region's tag that humongous regions have; 0: not known
	rest     uint32 // G1: the tag of a region that continues a humongous object
	hasRest  bool
	shen     shenandoahRegions
	cms      cmsLayout
	pageType offset `vm:"ZPage._type"`
	pageAges offset // ZPage: its generation and its age, a byte each; absent if ZGC has no generations
	loader   offset `vm:"ClassLoaderData._class_loader"` // an OopHandle, up to 8 the reference itself
	oopLoad  bool   // loader is the reference itself
}

// tlabLayout has offsets in a thread of its buffer's fields.
type tlabLayout struct {
	start offset `vm:"Thread._tlab > ThreadLocalAllocBuffer._start"`
	top   offset `vm:"Thread._tlab > ThreadLocalAllocBuffer._top"`
	end   offset `vm:"Thread._tlab > ThreadLocalAllocBuffer._end"`
	size  offset `vm:"Thread._tlab > ThreadLocalAllocBuffer._desired_size"`
	// hardEnd is the real end of the buffer. end may be lower, at the place where the thread must sample an allocation
	// (JEP 331, since 11). The JVM does not export this field. The distance between end and size shows that it is between
	// them.
	hardEnd offset
	// reserve is a variable with the number of words after hardEnd that also belong to the buffer, for prefetches.
	reserve uint64 `vm:"ThreadLocalAllocBuffer._reserve_for_allocation_prefetch|Abstract_VM_Version._reserve_for_allocation_prefetch"`
}

type shenandoahRegions struct {
	table  offset `vm:"ShenandoahHeap._regions"`
	number offset `vm:"ShenandoahHeap._num_regions"`
	bottom offset `vm:"ShenandoahHeapRegion._bottom"`
	top    offset `vm:"ShenandoahHeapRegion._top"`
	end    offset `vm:"ShenandoahHeapRegion._end"`
	state  offset `vm:"ShenandoahHeapRegion._state"`

	regular     int32 `vm:"ShenandoahHeapRegion::_regular" else:"-1"`
	pinned      int32 `vm:"ShenandoahHeapRegion::_pinned" else:"-1"`
	start       int32 `vm:"ShenandoahHeapRegion::_humongous_start" else:"-1"`
	cont        int32 `vm:"ShenandoahHeapRegion::_humongous_cont" else:"-1"`
	pinnedStart int32 `vm:"ShenandoahHeapRegion::_pinned_humongous_start" else:"-1"`
	set         int32 `vm:"ShenandoahHeapRegion::_cset" else:"-1"`
	pinnedSet   int32 `vm:"ShenandoahHeapRegion::_pinned_cset" else:"-1"`
}

func (r *resolver) areas() areasLayout {
	l := fill[areasLayout](r, "")
	l.big = uint32(r.int("G1HeapRegionType::HumongousMask", r.int("HeapRegionType::HumongousMask", 0)))
	rest := r.int("G1HeapRegionType::ContinuesHumongousTag", r.int("HeapRegionType::ContinuesHumongousTag", -1))
	l.rest, l.hasRest = uint32(rest), rest > 0
	l.oopLoad = r.isOop("ClassLoaderData._class_loader")
	// A ZPage begins with its type, its generation and its age, a byte each, and two sequence numbers of four bytes.
	// Without generations it begins with its type and one sequence number (gc/z/zPage.hpp, before and since 21).
	l.pageAges = absent
	if at := r.field("", "ZPage._virtual"); l.pageType.ok() && at == l.pageType+16 {
		l.pageAges = l.pageType + 1
	}
	l.tlab.hardEnd = absent
	if l.tlab.end.ok() && l.tlab.size == l.tlab.end+16 {
		l.tlab.hardEnd = l.tlab.end + 8
	}
	return l
}
