package vmstructs

// Anchor is a JavaFrameAnchor: where a thread's Java frames begin while it runs other
// code (runtime/javaFrameAnchor.hpp). SP 0 means that there is none. PC may be 0 where it
// is the word below SP.
type Anchor struct{ SP, PC, FP uint64 }

// Anchor returns the anchor of a JavaThread.
func (vm *VM) Anchor(javaThread uint64) (Anchor, error) {
	if !vm.l.thread.anchor.ok() {
		return Anchor{}, ErrMissing
	}
	return vm.anchorAt(javaThread + uint64(vm.l.thread.anchor))
}

// WrapperAnchor returns the anchor that a JavaCallWrapper saved: where Java left off when
// C++ called it again (runtime/javaCalls.hpp).
func (vm *VM) WrapperAnchor(wrapper uint64) (Anchor, error) {
	if !vm.l.thread.wrapperAnchor.ok() {
		return Anchor{}, ErrMissing
	}
	return vm.anchorAt(wrapper + uint64(vm.l.thread.wrapperAnchor))
}

func (vm *VM) anchorAt(addr uint64) (Anchor, error) {
	l := &vm.l.thread
	if !l.sp.ok() || !l.pc.ok() {
		return Anchor{}, ErrMissing
	}
	b := vm.scratch(l.anchorSpan)
	if err := vm.mem.Bytes(addr, b); err != nil {
		return Anchor{}, err
	}
	a := Anchor{SP: l.sp.u64(b), PC: l.pc.u64(b)}
	if l.fp.ok() {
		a.FP = l.fp.u64(b)
	}
	return a, nil
}
