package vmstructs

import (
	"cmp"
	"slices"
)

// MemoryUse is the JVM's use of a range of addresses.
type MemoryUse uint8

const (
	HeapMemory       MemoryUse = iota + 1
	CodeMemory                 // Name is the name of the part of the code cache
	StackMemory                // of a Java thread
	CollectorMemory            // Name is the table's name
	ArchiveMemory              // of class data sharing
	ClassSpaceMemory           // metadata in the range of compressed class pointers
	MetaspaceMemory            // other metadata
)

// MemoryRange is a range of addresses that the JVM has reserved.
type MemoryRange struct {
	Start, End uint64
	Use        MemoryUse
	Name       string
	Rough      bool // only the anonymous memory of one mapping in the range has this use
}

const (
	// rootChunk is the size of metaspace's largest chunks. An aligned range of that size has no other use
	// (memory/metaspace/chunklevel.hpp, MAX_CHUNK_BYTE_SIZE; larger since 24). Up to 15 a chunk may be smaller.
	rootChunk          = 4 << 20
	maxMetaspaceChunks = 1 << 16
	// mapperBytes is the number of bytes of one of G1's mappers that are read. tableBytes is the number of bytes of the
	// structure that points to the mappers.
	mapperBytes, tableBytes = 96, 384
)

// MemoryRanges lists the memory that the JVM's structures describe. Ranges that could not be read are missing.
func (h *Health) MemoryRanges() (ranges []MemoryRange) {
	add := func(start, end uint64, use MemoryUse, name string) {
		if start != 0 && end > start && end-start <= maxHeapBytes {
			ranges = append(ranges, MemoryRange{Start: start, End: end, Use: use, Name: name})
		}
	}
	heapStart, heapEnd, _ := h.HeapRange()
	add(heapStart, heapEnd, HeapMemory, "")
	l := &h.vm.l.code
	for i, use := range h.Code() {
		heap := &h.vm.heaps[i]
		add(heap.low, heap.boundary, CodeMemory, cmp.Or(use.Name, "CodeCache"))
		add(heap.segmap, h.pointerAt(heap.addr+uint64(l.segmap), l.highBoundary), CodeMemory, "maps of segments")
	}
	threads, _ := h.Threads()
	for _, t := range threads {
		add(t.StackBase-min(t.StackBase, t.StackSize), t.StackBase, StackMemory, "")
	}
	m := &h.vm.l.memory
	add(h.pointerAt(m.archiveBase, 0), h.pointerAt(m.archiveTop, 0), ArchiveMemory, "")
	table := h.pointerAt(m.barrier, 0)
	if m.table.ok() && h.hasCards() {
		table = h.pointerAt(table, m.table)
	}
	if size, ok := h.sizeAt(table, m.cardBytes).Get(); ok && h.hasCards() {
		cards := h.pointerAt(table, m.cards)
		add(cards, cards+size, CollectorMemory, "card table")
	}
	ranges = append(ranges, h.collectorTables(heapEnd-heapStart)...)
	return append(ranges, h.metadata()...)
}

// hasCards reports whether the collector's barrier set has a card table (gc/shared/barrierSetConfig.hpp).
func (h *Health) hasCards() bool {
	return slices.Contains([]string{"Serial", "Parallel", "G1", "CMS"}, h.Collector())
}

// collectorTables finds tables of the collector that libjvm does not export. In the collector's structures, it looks
// for an address whose neighbour fits a heap of that size.
func (h *Health) collectorTables(heap uint64) (ranges []MemoryRange) {
	at := h.pointerAt(h.vm.l.health.heap, 0)
	if at == 0 || heap == 0 {
		return nil
	}
	words := make([]byte, tableBytes)
	add := func(low, size uint64, name string) {
		if low != 0 && low%8 == 0 {
			ranges = append(ranges, MemoryRange{Start: low, End: low + size, Use: CollectorMemory, Name: name})
		}
	}
	switch h.Collector() {
	case "G1":
		// HeapRegionManager has a mapper for each table (gc/g1/heapRegionManager.hpp, g1RegionToSpaceMapper.hpp). A mapper
		// has the addresses of the table's beginning and end (g1PageBasedVirtualSpace.hpp). A table has a byte for each 512
		// bytes of the heap, or a bit for each 8.
		mapper := make([]byte, mapperBytes)
		if !h.vm.l.memory.manager.ok() || h.vm.mem.Bytes(at+uint64(h.vm.l.memory.manager), words) != nil {
			return nil
		}
		for ; len(words) > 0; words = words[8:] {
			if p := word(words); p == 0 || p%8 != 0 || h.vm.mem.Bytes(p, mapper) != nil {
				continue
			}
			for k := 0; k+16 <= len(mapper); k += 8 {
				low, high := word(mapper[k:]), word(mapper[k+8:])
				if name := g1Tables[heap/max(high-low, 1)]; name != "" && low%4096 == 0 && high > low {
					add(low, high-low, name)
					break
				}
			}
		}
	case "Parallel": // gc/parallel/parMarkBitMap.hpp: bitmaps, each with an address and its number of bits
		bitmap, err := h.vm.t.Global(libjvm, "_ZN17PSParallelCompact12_mark_bitmapE")
		if err != nil || h.vm.mem.Bytes(bitmap, words[:mapperBytes]) != nil {
			return nil
		}
		for k := 0; k+16 <= mapperBytes; k += 8 {
			if word(words[k+8:]) == heap/8 {
				add(word(words[k:]), heap/64, "marking bitmap")
			}
		}
	}
	return ranges
}

// g1Tables are the tables of G1, by the number of bytes of the heap for each byte of the table.
var g1Tables = map[uint64]string{64: "marking bitmap", 512: "block offsets, cards"}

// metadata lists the chunks of metaspace around each class and its constants. It follows the subclasses of Object
// (oops/klass.hpp, _subklass and _next_sibling).
func (h *Health) metadata() (ranges []MemoryRange) {
	tree, m := &h.vm.l.hierarchy, &h.vm.l.memory
	object := h.pointerAt(h.pointerAt(h.vm.l.oops.threadKlass, 0), h.vm.l.health.super)
	if !tree.first.ok() || !tree.next.ok() || !m.constants.ok() || !m.helper.ok() || object == 0 {
		return nil
	}
	compressed := true // since 27 there is no flag, and all class pointers are
	if f, ok := h.Flag("UseCompressedClassPointers"); ok {
		compressed = f.Bool
	}
	chunks := map[uint64]MemoryUse{}
	note := func(addr uint64, use MemoryUse) {
		if chunk := addr &^ (rootChunk - 1); addr != 0 && chunks[chunk] == 0 && len(chunks) < maxMetaspaceChunks {
			chunks[chunk] = use
		}
	}
	fields := []offset{tree.first, tree.next, m.constants, m.helper}
	begin, size := slices.Min(fields), span(fields...)-int(slices.Min(fields))
	if size > maxRegionSpan {
		return nil
	}
	waiting := []uint64{object}
	for looked := 0; len(waiting) > 0 && looked < maxBootKlasses; {
		n := len(waiting) - min(len(waiting), threadBatch)
		batch := slices.Clone(waiting[n:])
		waiting = waiting[:n]
		h.eachAt(batch, begin, size, func(klass uint64, b []byte, ok bool) {
			if looked++; !ok {
				return
			}
			if compressed {
				note(klass, ClassSpaceMemory)
			} else {
				note(klass, MetaspaceMemory)
			}
			if int32((m.helper - begin).u32(b)) >= 0 { // arrays have no constants
				note((m.constants - begin).u64(b), MetaspaceMemory)
			}
			for _, f := range []offset{tree.first, tree.next} {
				if next := (f - begin).u64(b); next != 0 && next%8 == 0 {
					waiting = append(waiting, next)
				}
			}
		})
	}
	for chunk, use := range chunks {
		ranges = append(ranges, MemoryRange{Start: chunk, End: chunk + rootChunk, Use: use, Rough: true})
	}
	return ranges
}
