package vmstructs

import (
	"fmt"

	"goprof/process"
)

// The code cache consists of one to three heaps. A heap is an address range, committed from its low end as it is
// needed, and divided into segments of 64 or 128 bytes. A block in it is a HeapBlock header followed by a CodeBlob. It
// begins at a segment's boundary. The segment map shows which block a segment belongs to. It has a byte for each
// segment: 0xff is free, 0 begins a block, and any other value is a number of segments to go back towards the block's
// beginning (memory/heap.hpp, heap.cpp CodeHeap::find_block_for).
const (
	segmentFree  = 0xff
	maxHeaps     = 8
	maxCodeCache = 1 << 34 // HotSpot allows 2 GB
	segmapChunk  = 512
	// maxHops bounds the steps back to a block's beginning. Only merged blocks have short steps, and HotSpot allows 10,000
	// merges (fragmentation_limit).
	maxHops = 1 << 16
)

type codeHeap struct {
	addr     uint64 // of the CodeHeap
	low      uint64
	high     uint64 // end of the committed part, which grows
	boundary uint64 // end of the reserved part
	segmap   uint64
	log2     uint8 // of the segment's size
}

func (h *codeHeap) segment(pc uint64) uint64 { return (pc - h.low) >> h.log2 }

// openCodeCache finds the heaps.
func (vm *VM) openCodeCache() error {
	l := &vm.l.code
	heaps, err := vm.heapPointers()
	if err != nil {
		return err
	}
	for _, addr := range heaps {
		h, err := vm.readHeap(addr)
		if err != nil {
			return err
		}
		vm.heaps = append(vm.heaps, h)
		if vm.code.begin == 0 || h.low < vm.code.begin {
			vm.code.begin = h.low
		}
		vm.code.end = max(vm.code.end, h.boundary)
	}
	if l.lowBound == 0 || l.highBound == 0 {
		return nil
	}
	low, err := vm.mem.Ptr(l.lowBound)
	if err != nil {
		return err
	}
	high, err := vm.mem.Ptr(l.highBound)
	if err != nil {
		return err
	}
	if low < high && high-low <= maxCodeCache {
		vm.code = span64{low, high}
	}
	return nil
}

func (vm *VM) heapPointers() ([]uint64, error) {
	l := &vm.l.code
	if l.heaps == 0 {
		heap, err := vm.mem.Ptr(l.heap)
		if err == nil && heap == 0 {
			err = ErrStarting
		}
		return []uint64{heap}, err
	}
	array, err := vm.mem.Ptr(l.heaps)
	if err != nil {
		return nil, err
	}
	if array == 0 {
		return nil, ErrStarting
	}
	n, err := vm.mem.I32(array + uint64(l.arrayLen))
	if err != nil {
		return nil, err
	}
	if n == 0 {
		return nil, ErrStarting
	}
	if n < 0 || n > maxHeaps {
		return nil, fmt.Errorf("%w: %d code heaps", ErrBadTables, n)
	}
	data, err := vm.mem.Ptr(array + uint64(l.arrayData))
	if err != nil {
		return nil, err
	}
	heaps := make([]uint64, n)
	for i := range heaps {
		if heaps[i], err = vm.mem.Ptr(data + 8*uint64(i)); err != nil {
			return nil, err
		}
	}
	return heaps, nil
}

// readHeap reads the bounds and the segment map of a CodeHeap.
func (vm *VM) readHeap(addr uint64) (codeHeap, error) {
	l := &vm.l.code
	memory, segmap := addr+uint64(l.memory), addr+uint64(l.segmap)
	h := codeHeap{addr: addr}
	for _, f := range []struct {
		to   *uint64
		from uint64
	}{
		{&h.low, memory + uint64(l.low)},
		{&h.high, memory + uint64(l.high)},
		{&h.boundary, memory + uint64(l.highBoundary)},
		{&h.segmap, segmap + uint64(l.low)},
	} {
		v, err := vm.mem.Ptr(f.from)
		if err != nil {
			return h, fmt.Errorf("reading a code heap: %w", err)
		}
		*f.to = v
	}
	log2, err := vm.mem.I32(addr + uint64(l.log2Segment))
	if err != nil {
		return h, err
	}
	if h.low == 0 || h.segmap == 0 {
		return h, ErrStarting
	}
	if h.low > h.high || h.high > h.boundary || h.boundary-h.low > maxCodeCache || log2 < 4 || log2 > 16 {
		return h, fmt.Errorf("%w: code heap of %#x to %#x, segments of 2^%d", ErrBadTables, h.low, h.boundary, log2)
	}
	h.log2 = uint8(log2)
	return h, nil
}

// InCode reports whether pc is in the address ranges for generated code. It reads nothing.
func (vm *VM) InCode(pc uint64) bool { return vm.code.has(pc) }

// heapOf finds the heap that has pc in its committed part. If necessary, it reads the end of that part again.
func (vm *VM) heapOf(pc uint64) (*codeHeap, error) {
	for i := range vm.heaps {
		h := &vm.heaps[i]
		if pc < h.low || pc >= h.boundary {
			continue
		}
		if pc < h.high {
			return h, nil
		}
		if err := vm.growHeap(h); err != nil {
			return nil, err
		}
		if pc < h.high {
			return h, nil
		}
		break
	}
	return nil, ErrNoBlob
}

// growHeap reads the end of a heap's committed part again.
func (vm *VM) growHeap(h *codeHeap) error {
	l := &vm.l.code
	high, err := vm.mem.Ptr(h.addr + uint64(l.memory) + uint64(l.high))
	if err == nil && high > h.high && high <= h.boundary {
		h.high = high
	}
	return err
}

// findBlock returns the address of the header of the block that holds pc.
func (vm *VM) findBlock(h *codeHeap, pc uint64) (uint64, error) {
	return findBlock(vm.t, h, pc, vm.blobs.window[:])
}

// findBlock follows the segment map back from pc's segment.
func findBlock(m process.Memory, h *codeHeap, pc uint64, window []byte) (uint64, error) {
	i := h.segment(pc)
	begin, end := i+1, i+1 // the part of the map in the window
	for n := range maxHops {
		if i < begin || i >= end {
			begin, end = i+1-min(i+1, uint64(len(window))), i+1
			if err := m.Read(h.segmap+begin, window[:end-begin]); err != nil {
				return 0, err
			}
		}
		hop := uint64(window[i-begin])
		switch {
		case hop == segmentFree && n == 0:
			return 0, ErrNoBlob
		case hop == 0:
			return h.low + i<<h.log2, nil
		case hop > i || hop == segmentFree:
			return 0, fmt.Errorf("%w: segment map", ErrBadBlob)
		}
		i -= hop
	}
	return 0, fmt.Errorf("%w: more than %d hops in the segment map", ErrBadBlob, maxHops)
}

type block struct {
	addr uint64
	size uint64 // in bytes, including the header
	used bool
}

func (vm *VM) parseBlock(h *codeHeap, addr uint64, b []byte) block {
	l := &vm.l.code
	return block{addr, l.blockLength.unsigned(b) << h.log2, b[l.blockUsed] != 0}
}

// blockSpan is the number of bytes of a block's header that must be read.
func (l *codeLayout) blockSpan() int {
	return max(int(l.blockSize), int(l.blockLength.offset)+int(l.blockLength.width), int(l.blockUsed)+1)
}
