package vmstructs

import (
	"strings"

	"goprof/process/maybe"
)

// CodeUse is how full a heap of the code cache is.
type CodeUse struct {
	Name string // "CodeHeap 'profiled nmethods'", "CodeCache"; empty up to 8
	Amount
	Refused maybe.Value[uint64] // how often it was full; not known up to 8
}

// The fields of a CodeHeap after _log2_segment_size are not exported, but their list is always the same
// (memory/heap.hpp):
//
//	int _log2_segment_size, size_t _next_segment, FreeBlock* _freelist, [FreeBlock* _last_insert_point, since 9 or so],
//	size_t _freelist_segments, int _freelist_length, [size_t _max_allocated_capacity, const char* _name, CodeBlobType,
//	int blobs, nmethods, adapters, full]
//
// goprof uses these fields only if they are consistent: the size of a segment comes before its logarithm; fewer
// segments are free than were ever taken; the taken segments fit into the committed memory; the peak is not below the
// used size; the name, if there is one, is a valid name.
const (
	codeBefore = 24 // bytes that are read before _log2_segment_size, and after it
	codeBehind = 104
	// Offsets of the fields after _log2_segment_size, relative to that field.
	codeNext     = 8
	codeFreeOld  = 24 // up to 8
	codeFree     = 32
	codePeak     = 48
	codeName     = 56
	codeFull     = 80 // after the type and three numbers
	maxCodeName  = 128
	maxCodeCount = 1 << 30
)

// Code reads how full each heap of the code cache is.
func (h *Health) Code() (parts []CodeUse) {
	for i := range h.vm.heaps {
		parts = append(parts, h.codeHeap(&h.vm.heaps[i]))
	}
	return parts
}

// codeHeap reads how full one heap is. If its fields are inconsistent, it is not known.
func (h *Health) codeHeap(heap *codeHeap) (use CodeUse) {
	l := &h.vm.l.code
	use.Max = maybe.Known(heap.boundary - heap.low)
	high, err := h.vm.mem.Ptr(heap.addr + uint64(l.memory) + uint64(l.high))
	if err != nil || high < heap.low || high > heap.boundary {
		return use
	}
	use.Committed = maybe.Known(high - heap.low)
	if int(l.log2Segment) < codeBefore {
		return use
	}
	var b [codeBefore + codeBehind]byte
	if h.vm.mem.Bytes(heap.addr+uint64(l.log2Segment)-codeBefore, b[:]) != nil {
		return use
	}
	at := func(off int) uint64 { return word(b[codeBefore+off:]) }
	segments := (high - heap.low) >> heap.log2
	next := at(codeNext)
	if at(-8) != 1<<heap.log2 || next > segments {
		return use
	}
	name, named := h.codeName(at(codeName))
	free := at(codeFreeOld)
	if named {
		free = at(codeFree)
	} else if !h.vm.l.jdk8 {
		return use
	}
	used := (next - free) << heap.log2
	if free > next || named && at(codePeak) < used {
		return use
	}
	use.Name, use.Used = name, maybe.Known(used)
	if named {
		full := offset(codeBefore + codeFull).u32(b[:])
		use.Refused = maybe.If(uint64(full), full < maxCodeCount)
	}
	return use
}

func (h *Health) codeName(addr uint64) (string, bool) {
	if addr == 0 {
		return "", false
	}
	name, err := h.vm.mem.CString(addr, maxCodeName)
	if err != nil || !strings.HasPrefix(name, "CodeHeap '") && name != "CodeCache" {
		return "", false
	}
	return cleanText(name), true
}
