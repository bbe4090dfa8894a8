package vmstructs

import (
	"encoding/binary"
	"fmt"
	"slices"

	"goprof/process"
)

// A compiler records two kinds of pcs. Safepoints are return addresses of calls and polls: the collector
// may look at the frame there, so each has an OopMap (code/debugInfoRec.cpp, add_safepoint). Others have
// none, and are recorded with -XX:+DebugNonSafepoints only, which agents and JFR switch on too
// (add_non_safepoint). What an OopMap holds does not matter here.

// maxOopMaps bounds how many an nmethod may have: at most one for each of its records.
const maxOopMaps = maxDebugBytes / pcDescSize

// safepoints is what is known of an nmethod's OopMaps.
type safepoints struct {
	known bool
	bits  []uint64 // by index of the PcDesc: it has an OopMap; nil where that cannot be told
	full  bool     // some records have none
}

// FullRecords reports whether the compiler has recorded where each instruction of b comes from, and not
// safepoints alone. Where it cannot be told, it has not.
func (vm *VM) FullRecords(b *Blob) bool { return vm.safepoints(b).full }

// IsSafepoint reports whether pc is recorded, and is a safepoint as far as is known.
func (vm *VM) IsSafepoint(b *Blob, pc uint64) bool {
	if !b.HasPcDesc(pc) {
		return false
	}
	s := vm.safepoints(b)
	return s.bits == nil || has(s.bits, b.debug.at(int32(pc-b.Begin)))
}

// SafepointsOnly is b as it would be if the compiler had recorded nothing but safepoints: what a rule
// for such code makes of it can be held against the full records. It is in no cache.
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
	for i := range n - min(n, 1) { // the last one only ends the table
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
		return nil, nil // code that calls nothing and has no loop
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

// immutableOopMaps reads a set of JDK 9 or later: pairs of offsets follow its head (compiler/oopMap.hpp).
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

// oldOopMaps reads a set of JDK 8: an array of pointers to maps, each of which has its offset.
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

// oopMapLayout: compiler/oopMap.hpp.
type oopMapLayout struct {
	count      offset // of either kind of set
	setSize    uint64 // since 9
	pairSize   uint64
	pairOffset offset
	data       offset // up to 8
	mapOffset  offset
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
	l := oopMapLayout{
		count:      r.field(capSafepoints, "ImmutableOopMapSet._count"),
		setSize:    r.size(capSafepoints, "ImmutableOopMapSet"),
		pairSize:   r.size(capSafepoints, "ImmutableOopMapPair"),
		pairOffset: r.field(capSafepoints, "ImmutableOopMapPair._pc_offset"),
	}
	if l.pairOffset.ok() && l.pairSize != 0 && (l.pairSize < uint64(l.pairOffset)+4 || l.pairSize > maxStride) {
		r.lost(capSafepoints, "sizeof ImmutableOopMapPair")
	}
	return l
}
