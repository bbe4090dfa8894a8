package vmstructs

import (
	"encoding/binary"
	"fmt"
	"slices"

	"goprof/process"
)

// A compiler records two kinds of pcs. Safepoints are polls and the return addresses of calls, at which the collector
// may read the frame. So each safepoint has an OopMap (code/debugInfoRec.cpp, add_safepoint). Other pcs have none. They
// are recorded only with -XX:+DebugNonSafepoints (add_non_safepoint), which agents and JFR may also switch on. goprof
// reads only which pcs have an OopMap.

// maxOopMaps bounds the OopMaps of an nmethod, which has at most one for each of its records.
const maxOopMaps = maxDebugBytes / pcDescSize

// safepoints has the facts about an nmethod's OopMaps.
type safepoints struct {
	known bool
	bits  []uint64 // a bit for each PcDesc that has an OopMap, by its index; nil if they are not known
	full  bool     // some records have no OopMap
}

// FullRecords reports whether the compiler has recorded all instructions of b, not only safepoints. It returns false if
// that is not known.
func (vm *VM) FullRecords(b *Blob) bool { return vm.safepoints(b).full }

// IsSafepoint reports whether pc is recorded, and is a safepoint. If OopMaps cannot be read, each record counts as a
// safepoint.
func (vm *VM) IsSafepoint(b *Blob, pc uint64) bool {
	if !b.HasPcDesc(pc) {
		return false
	}
	s := vm.safepoints(b)
	return s.bits == nil || has(s.bits, b.debug.at(int32(pc-b.Begin)))
}

// SafepointsOnly returns a copy of b with the records of safepoints only. A rule's results for such code can be
// compared with the full records. The result is not cached.
func (vm *VM) SafepointsOnly(b *Blob) *Blob {
	s := vm.safepoints(b)
	less := *b
	less.scopes, less.safepoints = nil, safepoints{known: true}
	if s.bits == nil {
		return &less
	}
	less.debug.pcs = nil
	for i := range b.debug.count() {
		if has(s.bits, i) || b.debug.pcOffset(i) < 0 || i == b.debug.count()-1 {
			less.debug.pcs = append(less.debug.pcs, b.debug.pcs[i*pcDescSize:(i+1)*pcDescSize]...)
		}
	}
	return &less
}

func has(bits []uint64, i int) bool { return bits[i/64]&(1<<(i%64)) != 0 }

// safepoints reads b's OopMaps once.
func (vm *VM) safepoints(b *Blob) *safepoints {
	s := &b.safepoints
	if s.known {
		return s
	}
	s.known = true
	offsets, err := vm.oopMaps(b)
	if err != nil || !vm.holdsTrue(&b.fact) {
		return s
	}
	slices.Sort(offsets)
	n := b.debug.count()
	s.bits = make([]uint64, n/64+1)
	vm.charge(b, 8*len(s.bits))
	for i := range n - min(n, 1) { // the last PcDesc only ends the table
		rel := b.debug.pcOffset(i)
		if rel < 0 {
			continue
		}
		if _, ok := slices.BinarySearch(offsets, rel); ok {
			s.bits[i/64] |= 1 << (i % 64)
		} else {
			s.full = true
		}
	}
	return s
}

// oopMaps lists the offsets in b's code that have an OopMap.
func (vm *VM) oopMaps(b *Blob) ([]int32, error) {
	l := &vm.l.oopMaps
	if b.Kind != Nmethod || vm.lacks(capSafepoints) {
		return nil, ErrMissing
	}
	if b.oopMaps == 0 {
		return nil, nil // code without calls and without loops
	}
	n, err := vm.mem.I32(b.oopMaps + uint64(l.count))
	if err != nil {
		return nil, err
	}
	if n < 0 || n > maxOopMaps {
		return nil, fmt.Errorf("%w: %d OopMaps", ErrBadDebugInfo, n)
	}
	if l.pairSize != 0 {
		return vm.immutableOopMaps(b.oopMaps, int(n))
	}
	return vm.oldOopMaps(b.oopMaps, int(n))
}

// immutableOopMaps reads an ImmutableOopMapSet of JDK 9 or later: pairs of offsets follow its head
// (compiler/oopMap.hpp).
func (vm *VM) immutableOopMaps(set uint64, n int) ([]int32, error) {
	l := &vm.l.oopMaps
	size := int(l.pairSize)
	raw := make([]byte, n*size)
	if err := vm.mem.Bytes(set+l.setSize, raw); err != nil {
		return nil, err
	}
	offsets := make([]int32, n)
	for i := range offsets {
		offsets[i] = l.pairOffset.i32(raw[i*size:])
	}
	return offsets, nil
}

// oldOopMaps reads an OopMapSet of JDK 8: an array of pointers to OopMaps. Each OopMap has the offset of its pc.
func (vm *VM) oldOopMaps(set uint64, n int) ([]int32, error) {
	l := &vm.l.oopMaps
	data, err := vm.mem.Ptr(set + uint64(l.data))
	if err != nil {
		return nil, err
	}
	raw := make([]byte, n*8)
	if err := vm.mem.Bytes(data, raw); err != nil {
		return nil, err
	}
	ranges := make([]process.Range, n)
	for i := range ranges {
		ranges[i] = process.Range{Addr: word(raw[i*8:]) + uint64(l.mapOffset), Buf: make([]byte, 4)}
	}
	vm.t.ReadMany(ranges)
	offsets := make([]int32, n)
	for i := range ranges {
		if !ranges[i].OK {
			return nil, fmt.Errorf("reading OopMaps: %w", process.ErrFault)
		}
		offsets[i] = int32(binary.LittleEndian.Uint32(ranges[i].Buf))
	}
	return offsets, nil
}

// oopMapLayout has the fields for the pcs of OopMaps: compiler/oopMap.hpp.
type oopMapLayout struct {
	count      offset `need:"ImmutableOopMapSet._count"` // up to 8 of OopMapSet
	setSize    uint64 `need:"ImmutableOopMapSet"`        // since 9
	pairSize   uint64 `need:"ImmutableOopMapPair"`
	pairOffset offset `need:"ImmutableOopMapPair._pc_offset"`
	data       offset // OopMapSet (8): the array of its OopMaps
	mapOffset  offset // OopMap (8): the offset of the pc
}

func (r *resolver) oopMaps() oopMapLayout {
	_, counted := r.t.fields[fieldName{"ImmutableOopMapSet", "_count"}]
	if r.t.sizes["ImmutableOopMapSet"] == 0 && !counted {
		return oopMapLayout{
			count:     r.field(capSafepoints, "OopMapSet._om_count"),
			data:      r.field(capSafepoints, "OopMapSet._om_data"),
			mapOffset: r.field(capSafepoints, "OopMap._pc_offset"),
		}
	}
	l := fill[oopMapLayout](r, capSafepoints)
	if l.pairOffset.ok() && l.pairSize != 0 && (l.pairSize < uint64(l.pairOffset)+4 || l.pairSize > maxStride) {
		r.lost(capSafepoints, "sizeof ImmutableOopMapPair")
	}
	return l
}
