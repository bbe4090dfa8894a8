package vmstructs

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"goprof/process"
	"goprof/process/maybe"
)

// Heap finds the areas of the heap, and the objects in them. The program and its collector keep running. So Areas
// describes one moment, and a caller that has read an area must call Same afterwards.
//
// A Heap belongs to one goroutine.
type Heap struct {
	vm     *VM
	health *Health
	*Objects
	window []byte
	head   [findHead]byte
	heads  []byte // bytes of objects
	ranges []process.Range
	zBase  uint64 // ZGC: the number to add to an offset in the heap
	z      *Locks // ZGC: see zHeap
	// evacuated: Shenandoah is moving objects, or correcting references to moved objects.
	evacuated bool
}

// HeapPart is a part of the heap that a collector treats in its own way.
type HeapPart uint8

const (
	WholeHeap HeapPart = iota // this collector, or this JVM, does not distinguish parts
	YoungPart
	OldPart
	HumongousPart // each of these objects has regions of its own
	HeapParts     = int(iota)
)

func (p HeapPart) String() string { return [...]string{"heap", "young", "old", "humongous"}[p] }

// HeapArea is a range of the heap in which objects follow each other from Start to Top.
type HeapArea struct {
	Start, Top uint64
	Part       HeapPart
	region     uint64 // the address of the JVM's region, 0 if the area is not a region
	topAt      uint64 // of a space: the address of its top
	tag        uint32
	pitch      uint64 // if not 0, objects begin at multiples of it
	chunks     chunkModel
	seams      []seam
	last       extentEnd
}

// Region reports whether the area is one of many regions, each of which a collector empties as a whole.
func (a *HeapArea) Region() bool { return a.region != 0 }

// seam is an address in an area at which an object ends. The next object begins at next. In between is a thread's free
// memory for new objects.
type seam struct{ at, next uint64 }

// ErrNoAreas: this JVM does not export where its heap's objects are.
var ErrNoAreas = fmt.Errorf("%w: where the objects of the heap are", ErrMissing)

var ErrManyRegions = fmt.Errorf("the heap has more than %d regions", maxAreas)

// maxAreas bounds the regions of a heap, and so the memory for their list. With the JVM's own choice of region size,
// this is enough for a heap of 4 TB.
const maxAreas = 1 << 17

func (vm *VM) NewHeap() (*Heap, error) {
	objects, err := vm.NewObjects()
	if err != nil {
		return nil, err
	}
	if err := vm.readJavaFields(); err != nil { // for references: class loaders are objects
		return nil, err
	}
	h := &Heap{vm: vm, health: vm.NewHealth(), Objects: objects}
	if err := h.findPages(); err != nil {
		return nil, err
	}
	return h, nil
}

// HeapEpoch is the same at two moments if no collection has begun or ended in between.
type HeapEpoch struct {
	Collections uint64
	Active      bool // all threads are stopped for a collection
}

func (h *Heap) Epoch() HeapEpoch {
	l := &h.vm.l.health
	heap := h.health.pointerAt(l.heap, 0)
	var e HeapEpoch
	if heap == 0 {
		return e
	}
	if l.collections.ok() {
		n, _ := h.vm.mem.U32(heap + uint64(l.collections))
		e.Collections = uint64(n)
	}
	if l.active.ok() {
		b, _ := h.vm.mem.U8(heap + uint64(l.active))
		e.Active = b == 1
	}
	return e
}

// Areas lists the areas of the heap in the order of their addresses. unknown says which part of the heap is missing,
// and why.
func (h *Heap) Areas() (areas []*HeapArea, unknown string, err error) {
	heap := h.health.pointerAt(h.vm.l.health.heap, 0)
	if heap == 0 {
		return nil, "", ErrNoAreas
	}
	switch h.vm.Collector() {
	case "Serial", "CMS":
		areas, unknown = h.serialAreas(heap)
	case "Parallel":
		areas, unknown = h.parallelAreas(heap)
	case "G1":
		areas, err = h.g1Areas(heap)
	case "Shenandoah":
		areas, err = h.shenandoahAreas(heap)
	case "ZGC":
		areas, unknown, err = h.zAreas()
	case "Epsilon":
		l := &h.vm.l.health
		areas = h.space(areas, h.health.pointerAt(heap, l.epsilon), l.serial.bottom, l.serial.top, WholeHeap)
	}
	if err != nil {
		return nil, "", err
	}
	if len(areas) == 0 {
		return nil, "", ErrNoAreas
	}
	slices.SortFunc(areas, func(a, b *HeapArea) int { return cmp.Compare(a.Start, b.Start) })
	areas = apart(areas)
	if err := h.addSeams(areas); err != nil {
		return nil, "", err
	}
	return areas, unknown, nil
}

// apart leaves out areas that overlap the previous area.
func apart(areas []*HeapArea) []*HeapArea {
	kept := areas[:0]
	for _, a := range areas {
		if n := len(kept); n == 0 || a.Start >= kept[n-1].Top {
			kept = append(kept, a)
		}
	}
	return kept
}

func (h *Heap) space(areas []*HeapArea, at uint64, bottom, top offset, part HeapPart) []*HeapArea {
	from, to := h.health.pointerAt(at, bottom), h.health.pointerAt(at, top)
	if from == 0 || from%8 != 0 || to%8 != 0 || to <= from || to-from > maxHeapBytes {
		return areas
	}
	return append(areas, &HeapArea{Start: from, Top: to, Part: part, topAt: at + uint64(top)})
}

func (h *Heap) serialAreas(heap uint64) (areas []*HeapArea, unknown string) {
	l := &h.vm.l.health.serial
	young, old := h.health.serialGenerations(heap)
	for _, space := range []offset{l.eden, l.from} {
		areas = h.space(areas, h.health.pointerAt(young, space), l.bottom, l.top, YoungPart)
	}
	if h.vm.Collector() == "CMS" {
		return h.cmsArea(areas, old)
	}
	return h.space(areas, h.health.pointerAt(old, l.oldSpace), l.bottom, l.top, OldPart), ""
}

func (h *Heap) parallelAreas(heap uint64) (areas []*HeapArea, unknown string) {
	l := &h.vm.l.health.parallel
	young, old := h.health.parallelGenerations(heap)
	if h.vm.flagOn("UseNUMA") {
		unknown = "with UseNUMA eden has a piece for each node of the machine: objects there are not counted"
	} else {
		areas = h.space(areas, h.health.pointerAt(young, l.eden), l.bottom, l.top, YoungPart)
	}
	areas = h.space(areas, h.health.pointerAt(young, l.from), l.bottom, l.top, YoungPart)
	return h.space(areas, h.health.pointerAt(old, l.oldSpace), l.bottom, l.top, OldPart), unknown
}

// Same reports whether an area has neither been reused nor partly emptied. But its objects may have moved.
func (h *Heap) Same(a *HeapArea) bool {
	if a.region == 0 {
		return h.health.pointerAt(a.topAt, 0) >= a.Top
	}
	switch h.vm.Collector() {
	case "G1":
		return h.sameG1(a)
	case "Shenandoah":
		return h.sameShenandoah(a)
	case "ZGC":
		return h.samePage(a)
	}
	return true
}

// OldCollections are the collections of the old generation, or of the heap if it has no generations.
type OldCollections struct {
	Count uint64 // since the JVM began
	// Swept is the time since the end of the last collection that has left no dead object in the old generation.
	Swept maybe.Value[time.Duration]
}

// Lifetime says that a JVM began between Since and Until. Now is the present time. All are by the present setting of
// the clock. Since and Until are zero if not known.
type Lifetime struct{ Since, Until, Now time.Time }

// began returns when the JVM began. at is the JVM's own record, but the clock may have been set since then.
func (l *Lifetime) began(at time.Time) time.Time {
	if !l.Until.IsZero() && at.After(l.Until) {
		at = l.Until
	}
	if at.Before(l.Since) {
		at = l.Since
	}
	return at
}

// OldCollections reads the JVM's counters. ok is false if there are none (-XX:-UsePerfData).
func (h *Heap) OldCollections(life Lifetime) (o OldCollections, ok bool) {
	c, counted := h.health.Counters()
	if !counted {
		return o, false
	}
	var names []string
	for len(names) < maxCollectors {
		name, exists := c.Text(collectorCounter(len(names), "name"))
		if !exists {
			break
		}
		names = append(names, name)
	}
	swept := int64(0)
	for i, kind := range KindsOfCollectors(names) {
		young := kind == YoungCollections || kind == OtherCollections || strings.HasPrefix(names[i], "ZGC minor")
		if invocations, known := c.Long(collectorCounter(i, "invocations")); known && invocations >= 0 && !young {
			o.Count, ok = o.Count+uint64(invocations), true
		}
		if ended, known := c.Long(collectorCounter(i, "lastExitTime")); known && h.sweeps(kind) {
			swept = max(swept, ended)
		}
	}
	began, ok1 := c.Long("sun.rt.createVmBeginTime") // sun.os.hrt.ticks does not exist since 25
	hz, ok2 := c.Long("sun.os.hrt.frequency")
	ago := life.Now.Sub(life.began(time.UnixMilli(began))).Seconds() - float64(swept)/float64(hz)
	o.Swept = maybe.If(time.Duration(max(ago, 0)*1e9), ok1 && ok2 && hz > 0 && swept > 0 && ago < math.MaxInt64/2e9)
	return o, ok
}

// sweepsSince is the first release in which G1 replaces dead objects with fillers. It does so at the end of a
// concurrent marking (gc/g1/g1ConcurrentRebuildAndScrub.cpp), and in regions that a full collection does not compact
// (g1FullGCResetMetadataTask.cpp, scrub_skip_compacting_region).
const sweepsSince = 20

// sweeps reports whether a collection of this kind leaves no dead objects in the old generation. Full collections of
// Serial and Parallel write fillers where they do not compact (gc/serial/serialFullGC.cpp, DeadSpacer;
// gc/parallel/psParallelCompact.cpp, fill_dead_objs_in_dense_prefix).
func (h *Heap) sweeps(kind CollectorKind) bool {
	switch h.vm.Collector() {
	case "Serial", "Parallel":
		return kind == FullCollections
	case "G1":
		return h.vm.version.Major >= sweepsSince && (kind == FullCollections || kind == ConcurrentPauses)
	}
	return false
}

// maxCollectors bounds the collectors in the JVM's counters. There are up to three.
const maxCollectors = 10

func collectorCounter(i int, what string) string {
	return "sun.gc.collector." + strconv.Itoa(i) + "." + what
}

// Capacity is the largest possible size of the heap, 0 if not known.
func (h *Heap) Capacity() uint64 { return h.vm.maxHeap() }

// maxHeap returns the flag MaxHeapSize, 0 if not known.
func (vm *VM) maxHeap() uint64 {
	if limit, ok := vm.Flag("MaxHeapSize"); ok && limit.Uint <= maxHeapBytes {
		return limit.Uint
	}
	return 0
}

// OldMax is the largest possible size of the old generation, 0 if not known.
func (h *Heap) OldMax() uint64 { return h.health.Heap().Old.Max.Or(0) }
