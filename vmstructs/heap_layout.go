package vmstructs

// areasLayout has the fields that are needed to find the heap's areas, in addition to healthLayout. All of them are
// optional: if the areas are not known, the heap is not read.
//
// gc/g1/heapRegionType.hpp (g1HeapRegionType.hpp since 24), gc/shared/threadLocalAllocBuffer.hpp,
// gc/shenandoah/shenandoahHeapRegion.hpp, gc/z/zPage.hpp.
type areasLayout struct {
	tlab     tlabLayout
	big      uint32 // G1: the bit of a region's tag that humongous regions have; 0: not known
	rest     uint32 // G1: the tag of a region that goes on with a humongous object
	hasRest  bool
	shen     shenandoahRegions
	cms      cmsLayout
	pageType offset // ZPage
	pageAges offset // ZPage: its generation and its age, a byte each; absent where ZGC has no generations
	loader   offset // ClassLoaderData: an OopHandle, up to 8 the reference itself
	oopLoad  bool   // loader is the reference itself
}

// tlabLayout: offsets in a thread of its buffer's fields.
type tlabLayout struct {
	start, top, end offset
	// hardEnd: where the buffer really ends. end may be nearer: the thread is to allocate a sample there (JEP 331, since
	// 11). The JVM does not export the field. It lies between _end and _desired_size, which leave room for it.
	hardEnd offset
	reserve uint64 // a variable: how many words behind that the buffer also has, for prefetches
}

type shenandoahRegions struct {
	table, number   offset // of ShenandoahHeap
	bottom, top     offset // ShenandoahHeapRegion
	end, state      offset
	pinned, regular int32 // states
	start, cont     int32
	pinnedStart     int32
	set, pinnedSet  int32 // in the collection set
}

func (r *resolver) areas() areasLayout {
	l := areasLayout{
		tlab:     r.tlab(),
		big:      uint32(r.int("G1HeapRegionType::HumongousMask", r.int("HeapRegionType::HumongousMask", 0))),
		shen:     r.shenandoahRegions(),
		cms:      r.cms(),
		pageType: r.field("", "ZPage._type"),
		pageAges: absent,
		loader:   r.field("", "ClassLoaderData._class_loader"),
	}
	// A ZPage begins with its type, its generation and its age, a byte each, and with two sequence numbers of four bytes.
	// Without generations it has one of these (gc/z/zPage.hpp, before and since 21).
	if at := r.field("", "ZPage._virtual"); l.pageType.ok() && at == l.pageType+16 {
		l.pageAges = l.pageType + 1
	}
	rest := r.int("G1HeapRegionType::ContinuesHumongousTag", r.int("HeapRegionType::ContinuesHumongousTag", -1))
	l.rest, l.hasRest = uint32(rest), rest > 0
	if f, ok := r.lookup("ClassLoaderData._class_loader", false); ok {
		l.oopLoad = f.typ == "oop"
	}
	return l
}

func (r *resolver) tlab() tlabLayout {
	at := r.field("", "Thread._tlab")
	end, size := r.field("", "ThreadLocalAllocBuffer._end"), r.field("", "ThreadLocalAllocBuffer._desired_size")
	l := tlabLayout{
		start:   chain(at, r.field("", "ThreadLocalAllocBuffer._start")),
		top:     chain(at, r.field("", "ThreadLocalAllocBuffer._top")),
		end:     chain(at, end),
		hardEnd: absent,
		reserve: r.static("", "ThreadLocalAllocBuffer._reserve_for_allocation_prefetch|"+
			"Abstract_VM_Version._reserve_for_allocation_prefetch"),
	}
	if end.ok() && size == end+16 {
		l.hardEnd = chain(at, end+8)
	}
	return l
}

func (r *resolver) shenandoahRegions() shenandoahRegions {
	state := func(name string) int32 { return r.int("ShenandoahHeapRegion::"+name, -1) }
	return shenandoahRegions{
		table:       r.field("", "ShenandoahHeap._regions"),
		number:      r.field("", "ShenandoahHeap._num_regions"),
		bottom:      r.field("", "ShenandoahHeapRegion._bottom"),
		top:         r.field("", "ShenandoahHeapRegion._top"),
		end:         r.field("", "ShenandoahHeapRegion._end"),
		state:       r.field("", "ShenandoahHeapRegion._state"),
		regular:     state("_regular"),
		pinned:      state("_pinned"),
		start:       state("_humongous_start"),
		cont:        state("_humongous_cont"),
		pinnedStart: state("_pinned_humongous_start"),
		set:         state("_cset"),
		pinnedSet:   state("_pinned_cset"),
	}
}
