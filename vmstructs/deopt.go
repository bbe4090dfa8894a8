package vmstructs

import "fmt"

// maxVFrames bounds the frames that one compiled frame is turned into.
const maxVFrames = maxInline

// VFrames returns the frames that deoptimization is about to build in place of a compiled
// frame of that thread, the innermost first; none if it is not at it. They stand in a
// vframeArray, whose elements go from the youngest to the oldest (runtime/vframeArray.hpp).
// side is the snapshot's, copied at addr: the array must have been there then and be there
// still.
func (vm *VM) VFrames(addr uint64, side []byte) ([]Scope, error) {
	l := &vm.l.deopt
	if vm.lacks(capDeopt) {
		return nil, ErrMissing
	}
	array := vm.vframesIn(side)
	if array == 0 {
		return nil, nil
	}
	n, err := vm.mem.I32(array + uint64(l.frames))
	if err != nil {
		return nil, err
	}
	if n <= 0 || n > maxVFrames {
		return nil, fmt.Errorf("%w: %d frames being unpacked", ErrBadThread, n)
	}
	scopes := make([]Scope, n)
	for i := range scopes {
		element := array + uint64(l.elements) + uint64(i)*l.elementSize
		addr, err := vm.mem.Ptr(element + uint64(l.method))
		if err != nil {
			return nil, err
		}
		bci, err := vm.mem.I32(element + uint64(l.bci))
		if err != nil {
			return nil, err
		}
		m, err := vm.MethodNow(addr)
		if err != nil {
			return nil, err
		}
		if bci < -1 || bci >= int32(m.CodeSize) && !m.Native {
			return nil, fmt.Errorf("%w: bci %d of %d", ErrBadThread, bci, m.CodeSize)
		}
		scopes[i] = Scope{m, bci, m.Line(bci)}
	}
	begin, _ := vm.Side()
	if again, err := vm.mem.Ptr(addr + uint64(l.head) - begin); err != nil || again != array {
		return nil, ErrChanged
	}
	return scopes, nil
}
