package vmstructs

// A walk must not read a thread's frame anchor when the thread runs again: by then it
// tells of another moment. So the sampler copies that part of the JavaThread in the same
// pause as the stack, as Snapshot.Side, and these functions read it there.

// maxSide bounds the part of a JavaThread that is copied in the pause.
const maxSide = 1024

// Side returns which part of a JavaThread a snapshot should carry. size 0: none.
func (vm *VM) Side() (offset uint64, size int) {
	t, d := &vm.l.thread, &vm.l.deopt
	if !t.anchor.ok() {
		return 0, 0
	}
	begin, end := uint64(t.anchor), uint64(t.anchor)+uint64(t.anchorSpan)
	if d.head.ok() {
		begin, end = min(begin, uint64(d.head)), max(end, uint64(d.head)+8)
	}
	if end-begin > maxSide {
		begin, end = uint64(t.anchor), uint64(t.anchor)+uint64(t.anchorSpan)
	}
	return begin, int(end - begin)
}

// AnchorIn returns the thread's anchor out of a snapshot's Side.
func (vm *VM) AnchorIn(side []byte) (Anchor, bool) {
	begin, size := vm.Side()
	if size == 0 || len(side) != size {
		return Anchor{}, false
	}
	return vm.DecodeAnchor(side[uint64(vm.l.thread.anchor)-begin:])
}

// vframesIn returns the address of the vframeArray that the thread was unpacking, or 0.
func (vm *VM) vframesIn(side []byte) uint64 {
	begin, size := vm.Side()
	at := uint64(vm.l.deopt.head) - begin
	if !vm.l.deopt.head.ok() || len(side) != size || uint64(size) < 8 || at > uint64(size-8) {
		return 0
	}
	return word(side[at:])
}

// DecodeAnchor reads a JavaFrameAnchor out of b.
func (vm *VM) DecodeAnchor(b []byte) (Anchor, bool) {
	l := &vm.l.thread
	if !l.sp.ok() || !l.pc.ok() || len(b) < l.anchorSpan {
		return Anchor{}, false
	}
	a := Anchor{SP: l.sp.u64(b), PC: l.pc.u64(b)}
	if l.fp.ok() {
		a.FP = l.fp.u64(b)
	}
	return a, true
}

// WrapperAnchorOffset returns where in a JavaCallWrapper the anchor is that it saved:
// where Java left off when C++ called it again (runtime/javaCalls.hpp).
func (vm *VM) WrapperAnchorOffset() (offset uint64, ok bool) {
	return uint64(vm.l.thread.wrapperAnchor), vm.l.thread.wrapperAnchor.ok()
}
