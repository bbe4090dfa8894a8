package vmstructs

// When a thread runs again, its frame anchor changes. So the sampler copies a part of the JavaThread in the pause,
// together with the stack, as Snapshot.Side. These functions read the copy.

// maxSide bounds that part. The anchor comes first. The copy in an older recording may be shorter than the size that
// Side returns.
const maxSide = 1024

// Side returns the part of a JavaThread that a snapshot should have. If size is 0, there is none.
func (vm *VM) Side() (from uint64, size int) {
	t := &vm.l.thread
	if !t.anchor.ok() {
		return 0, 0
	}
	begin, end := uint64(t.anchor), uint64(t.anchor)+uint64(t.anchorSpan)
	entry, _ := vm.entryOffset()
	for _, f := range [...]offset{vm.l.deopt.head, t.trapPC, entry, vm.l.deopt.thrownAt} {
		if f.ok() && max(end, uint64(f)+8)-min(begin, uint64(f)) <= maxSide {
			begin, end = min(begin, uint64(f)), max(end, uint64(f)+8)
		}
	}
	return begin, int(end - begin)
}

// AnchorIn reads the thread's anchor from a snapshot's Side.
func (vm *VM) AnchorIn(side []byte) (Anchor, bool) {
	begin, size := vm.Side()
	at := uint64(vm.l.thread.anchor) - begin
	if size == 0 || at > uint64(len(side)) {
		return Anchor{}, false
	}
	return vm.DecodeAnchor(side[at:])
}

// vframesIn returns the address of the vframeArray that the thread was unpacking, or 0.
func (vm *VM) vframesIn(side []byte) uint64 {
	array, _ := vm.sideWord(side, vm.l.deopt.head)
	return array
}

// ThrownAt returns the pc in compiled code at which an exception was thrown, or passed on its way to a handler
// (JavaThread::_exception_pc), 0 if there is none.
func (vm *VM) ThrownAt(side []byte) uint64 {
	pc, _ := vm.sideWord(side, vm.l.deopt.thrownAt)
	return pc
}

// TrapPC returns the pc in Java code at which the thread ran into a trap, such as a safepoint poll. The signal handler
// stores this pc before it sends the thread to a stub (JavaThread::_saved_exception_pc, os_cpu/linux_*/os_linux_*.cpp).
// Outside of that stub, the pc is out of date.
func (vm *VM) TrapPC(side []byte) (uint64, bool) {
	return vm.sideWord(side, vm.l.thread.trapPC)
}

func (vm *VM) sideWord(side []byte, f offset) (uint64, bool) {
	begin, size := vm.Side()
	at := uint64(f) - begin
	if !f.ok() || size == 0 || len(side) < 8 || at > uint64(len(side)-8) {
		return 0, false
	}
	return word(side[at:]), true
}

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

// WrapperAnchorOffset returns the offset in a JavaCallWrapper of its saved anchor. The anchor shows the end of the Java
// frames that called the C++ code, which now calls Java again (runtime/javaCalls.hpp).
func (vm *VM) WrapperAnchorOffset() (offset uint64, ok bool) {
	return uint64(vm.l.thread.wrapperAnchor), vm.l.thread.wrapperAnchor.ok()
}
