package vmstructs

import "fmt"

// heapModel describes the encoding of references to Java objects, and the layout of arrays.
type heapModel struct {
	narrow      bool // a reference n has four bytes and stands for base + n<<shift (oops/compressedOops.hpp)
	base        uint64
	shift       uint64
	arrayLength uint64 // offset of an array's length
	arrayData   uint64 // offset of its bytes or chars
	z           zModel
}

// zModel describes how ZGC colours references (gc/z/zAddress.hpp). A reference with a bad colour may point to an object
// that was moved.
type zModel struct {
	on      bool
	badMask uint64                         // address of the mask of bad colours, which changes with each phase
	shift   uint64                         // ZGC with generations: the address of the shift for references; else 0
	held    *zColours                      // see holdColours
	stale   func(v uint64) (uint64, error) // follows a reference with a bad colour, if not nil
}

// zColourBits: ZGC with generations has colours in the lowest 16 bits of a reference (gc/z/zAddress.hpp, ZPointer).
const zColourBits = 16

// zColours are the mask and the shift at one moment; see holdColours.
type zColours struct{ badMask, shift uint64 }

// readHeapModel finds the layout of objects (oops/arrayOop.hpp). An array's length follows its header, which has 8
// bytes if it is compact, 12 with compressed class pointers, else 16. Since 23 the elements of an array of bytes
// directly follow the length. Before that, they begin at the next word.
func (vm *VM) readHeapModel() (heapModel, error) {
	l := &vm.l.oops
	var h heapModel
	var err error
	if l.narrowBase == 0 || l.narrowShift == 0 {
		return h, ErrMissing
	}
	h.narrow = vm.flagOn("UseCompressedOops")
	if h.base, err = vm.mem.U64(l.narrowBase); err != nil {
		return h, err
	}
	shift, err := vm.mem.U32(l.narrowShift)
	if err != nil {
		return h, err
	}
	if h.shift = uint64(shift); h.narrow && h.shift > 8 {
		return h, fmt.Errorf("%w: shift of references %d", ErrBadTables, shift)
	}
	h.arrayLength, h.arrayData = vm.arrayLayout()
	if vm.flagOn("UseZGC") {
		h.z, err = vm.readZ()
	}
	return h, err
}

// arrayLayout returns the offset of an array's length, and of its bytes or chars.
func (vm *VM) arrayLayout() (length, data uint64) {
	classPointers, exists := vm.Flag("UseCompressedClassPointers")
	switch {
	case vm.flagOn("UseCompactObjectHeaders"):
		return 8, 12
	case classPointers.Bool || !exists: // since 27 class pointers are always compressed
		return 12, 16
	case vm.version.Major >= 23:
		return 16, 20
	}
	return 16, 24
}

// eightBytes is the logarithm of the alignment of objects.
const eightBytes = 3

// ScalesReferences reports whether references are compressed and stand for eight times their value. Then code for x86
// computes an object's address as the heap's base, in a register, plus eight times the reference (x86.ad,
// indCompressedOopOffset). If references are not compressed, the shift is 0 (CompressedOops::initialize is not called).
func (vm *VM) ScalesReferences() bool {
	vm.learnScale()
	return vm.scales
}

// HeapHasBase reports whether the base of compressed references is not zero (CompressedOops::base).
func (vm *VM) HeapHasBase() bool {
	vm.learnScale()
	return vm.basedHeap
}

// learnScale reads shift and base once, because the JVM does not change them after its first compilation.
func (vm *VM) learnScale() {
	l := &vm.l.oops
	if vm.scalesKnown || l.narrowShift == 0 || l.narrowBase == 0 {
		return
	}
	shift, err := vm.mem.U32(l.narrowShift)
	base, err2 := vm.mem.U64(l.narrowBase)
	vm.scales, vm.basedHeap, vm.scalesKnown = shift == eightBytes, base != 0, err == nil && err2 == nil
}

// readZ finds the mask and the shift (gc/z/vmStructs_z.hpp). ZGlobalsForVMStructs has pointers to them.
func (vm *VM) readZ() (zModel, error) {
	l := &vm.l.oops
	z := zModel{on: true}
	holder, mask := l.zGlobals, l.zBadMask
	generational := l.zLoadBadMask.ok() && l.zLoadShift.ok()
	if l.xGlobals != 0 && !vm.flagOn("ZGenerational") {
		holder, mask, generational = l.xGlobals, l.xBadMask, false
	}
	if holder == 0 {
		return z, ErrMissing
	}
	globals, err := vm.mem.Ptr(holder)
	if err != nil {
		return z, err
	}
	if generational {
		mask = l.zLoadBadMask
	}
	if !mask.ok() || globals == 0 {
		return z, ErrMissing
	}
	if z.badMask, err = vm.mem.Ptr(globals + uint64(mask)); err != nil {
		return z, err
	}
	if generational {
		z.shift, err = vm.mem.Ptr(globals + uint64(l.zLoadShift))
	}
	return z, err
}

// oopAt reads the reference in a field of an object.
func (vm *VM) oopAt(addr uint64) (uint64, error) {
	h := &vm.java.heap
	if h.narrow {
		n, err := vm.mem.U32(addr)
		if err != nil || n == 0 {
			return 0, err
		}
		return h.base + uint64(n)<<h.shift, nil
	}
	return vm.wideOopAt(addr)
}

// wideOopAt reads a reference of eight bytes. References outside the heap always have eight.
func (vm *VM) wideOopAt(addr uint64) (uint64, error) {
	v, err := vm.mem.U64(addr)
	if err != nil || v == 0 {
		return 0, err
	}
	return vm.uncolour(v)
}

// uncolour converts a reference to an address.
func (vm *VM) uncolour(v uint64) (uint64, error) {
	z := &vm.java.heap.z
	if !z.on || v == 0 {
		return v, nil
	}
	now, err := vm.coloursNow()
	if err != nil {
		return 0, err
	}
	if z.shift != 0 && v>>zColourBits == 0 {
		return 0, nil // null, of any colour
	}
	if v&now.badMask != 0 {
		if z.stale != nil {
			return z.stale(v)
		}
		return 0, ErrMoved
	}
	if z.shift == 0 {
		return v, nil // each colour has its own mapping of the heap
	}
	shift := now.shift
	if shift == 0 {
		return v, nil
	}
	if shift > 32 {
		return 0, fmt.Errorf("%w: shift of references %d", ErrBadTables, shift)
	}
	return v >> shift, nil
}

// coloursNow reads the mask and the shift, unless they are held.
func (vm *VM) coloursNow() (now zColours, err error) {
	z := &vm.java.heap.z
	if z.held != nil {
		return *z.held, nil
	}
	if now.badMask, err = vm.mem.U64(z.badMask); err != nil || z.shift == 0 {
		return now, err
	}
	now.shift, err = vm.mem.U64(z.shift)
	return now, err
}

// holdColours reads the mask and the shift once for several references, because both change with each phase of a
// collection.
func (vm *VM) holdColours(in *zColours) error {
	z := &vm.java.heap.z
	z.held = nil
	if !z.on {
		return nil
	}
	var err error
	if *in, err = vm.coloursNow(); err == nil {
		z.held = in
	}
	return err
}

// letGoColours ends holdColours. It reports whether the mask and the shift are still the same.
func (vm *VM) letGoColours() bool {
	z := &vm.java.heap.z
	held := z.held
	if z.held = nil; held == nil {
		return true
	}
	now, err := vm.coloursNow()
	return err == nil && now == *held
}
