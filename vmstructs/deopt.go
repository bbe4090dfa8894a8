package vmstructs

import "fmt"

// maxVFrames bounds the frames that one compiled frame is turned into.
const maxVFrames = maxInline

// Unpacking is a compiled frame on its way to be interpreted ones.
type Unpacking struct {
	Frames   []Scope // innermost first
	CallerSP uint64  // of the frame's caller
}

// VFrames returns the frames that deoptimization is about to build in place of a compiled
// frame of that thread, the innermost first; none if it is not at it. They stand in a
// vframeArray, whose elements go from the youngest to the oldest (runtime/vframeArray.hpp).
// side is the snapshot's, copied at addr: the array must have been there then and be there
// still. It may be another one by then, at the same address: its caller's stack pointer is for the
// walker to compare.
func (vm *VM) VFrames(addr uint64, side []byte) (none Unpacking, err error) {
	l := &vm.l.deopt
	if vm.lacks(capDeopt) {
		return none, ErrMissing
	}
	array := vm.vframesIn(side)
	if array == 0 {
		return none, nil
	}
	n, err := vm.mem.I32(array + uint64(l.frames))
	if err != nil {
		return none, err
	}
	if n <= 0 || n > maxVFrames {
		return none, fmt.Errorf("%w: %d frames being unpacked", ErrBadThread, n)
	}
	scopes := make([]Scope, n)
	for i := range scopes {
		element := array + uint64(l.elements) + uint64(i)*l.elementSize
		addr, err := vm.mem.Ptr(element + uint64(l.method))
		if err != nil {
			return none, err
		}
		bci, err := vm.mem.I32(element + uint64(l.bci))
		if err != nil {
			return none, err
		}
		m, err := vm.MethodNow(addr)
		if err != nil {
			return none, err
		}
		if bci < -1 || bci >= int32(m.CodeSize) && !m.Native {
			return none, fmt.Errorf("%w: bci %d of %d", ErrBadThread, bci, m.CodeSize)
		}
		scopes[i] = Scope{m, bci, m.Line(bci)}
	}
	callerSP, err := vm.mem.Ptr(array + uint64(l.caller))
	if err != nil {
		return none, err
	}
	begin, _ := vm.Side()
	if again, err := vm.mem.Ptr(addr + uint64(l.head) - begin); err != nil || again != array {
		return none, ErrChanged
	}
	return Unpacking{scopes, callerSP}, nil
}
