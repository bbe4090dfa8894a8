package vmstructs

import "strings"

// ReturnBarrier reports whether pc is the return barrier, StubRoutines::_cont_returnBarrier. The lowest frame of a
// virtual thread on the stack returns there if its callers are still in the heap (stubGenerator_*.cpp,
// generate_cont_thaw). The tables export the barrier since 27; before that, .symtab has it. If neither has it, any
// return into a continuation stub counts as the barrier, because those stubs do not call Java.
func (vm *VM) ReturnBarrier(b *Blob, pc uint64) bool {
	if at := vm.returnBarrier(); at != 0 {
		return pc == at
	}
	return vm.InContinuationStub(b) && pc != vm.callRet
}

// InContinuationStub reports whether b has the stubs that freeze and thaw.
func (vm *VM) InContinuationStub(b *Blob) bool {
	return b.Kind == StubRoutines && strings.HasPrefix(b.Name, "StubRoutines (continuation")
}

// Thaws reports whether pc is in the stubs that copy frames of a virtual thread back from the heap
// (stubGenerator_*.cpp, generate_cont_thaw). They have no frame of their own, so their caller is the ContinuationEntry.
func (vm *VM) Thaws(pc uint64) bool {
	switch vm.StubName(pc) {
	case "cont_thaw", "cont_returnBarrier", "cont_returnBarrierExc",
		"Cont thaw", "Cont thaw return barrier", "Cont thaw return barrier exception": // up to 24 or so
		return true
	}
	return false
}

// noBarrier: the address of the return barrier is not known.
const noBarrier = ^uint64(0)

// returnBarrier returns the address of the return barrier, 0 if that is not known.
func (vm *VM) returnBarrier() uint64 {
	if vm.barrier == 0 {
		vm.barrier = vm.findReturnBarrier()
	}
	if vm.barrier == noBarrier {
		return 0
	}
	return vm.barrier
}

// findReturnBarrier returns 0 if the stub does not exist yet.
func (vm *VM) findReturnBarrier() uint64 {
	at, ok := vm.l.stubs.entries["cont_returnBarrier"]
	if !ok {
		at = vm.global("_ZN12StubRoutines19_cont_returnBarrierE")
	}
	if at == 0 {
		return noBarrier
	}
	pc, err := vm.mem.Ptr(at)
	if err != nil {
		return noBarrier
	}
	return pc
}

// global returns the address of a variable of libjvm.so, 0 if not known. A variable that was found is not searched
// again.
func (vm *VM) global(symbol string) uint64 {
	at, known := vm.globals[symbol]
	if !known {
		var err error
		if at, err = vm.t.Global(libjvm, symbol); err == nil {
			vm.globals[symbol] = at
		}
	}
	return at
}

// entryOffset returns the offset in a JavaThread of the pointer to its present ContinuationEntry. JDK 21 does not
// export that field. But the return barrier loads its stack pointer from the field, so its code shows the offset.
func (vm *VM) entryOffset() (offset, bool) {
	l := &vm.l.cont
	switch {
	case !l.vthread.ok():
		return absent, false
	case l.entry.ok():
		return l.entry, true
	}
	if vm.derived == 0 {
		vm.derived = vm.deriveEntry()
	}
	return vm.derived, vm.derived > 0
}

// deriveEntry reads the offset from the code of the return barrier. It returns absent if that fails, and 0 if it may
// succeed later.
func (vm *VM) deriveEntry() offset {
	barrier, read := vm.returnBarrier(), vm.t.CPU().ThreadSlot
	if vm.barrier == noBarrier {
		return absent
	}
	if barrier == 0 {
		return 0
	}
	var code [16]byte
	if vm.mem.Bytes(barrier, code[:]) != nil {
		return absent
	}
	if at, ok := read(code[:]); ok && at < maxOffset {
		return offset(at)
	}
	return absent
}

// ContinuationReturn returns the pc to which the lowest frame of a continuation returns
// (ContinuationEntry::_return_pc), 0 if that is not known.
func (vm *VM) ContinuationReturn() uint64 {
	if vm.contRet != 0 {
		return vm.contRet
	}
	at := vm.l.cont.entryPC
	if at == 0 && vm.l.cont.vthread.ok() {
		at = vm.global("_ZN17ContinuationEntry10_return_pcE")
	}
	if at == 0 {
		return 0
	}
	if pc, err := vm.mem.Ptr(at); err == nil {
		vm.contRet = pc
	}
	return vm.contRet
}

// IsContinuationEntry reports whether b is Continuation.enterSpecial, which the VM generates. There is a
// ContinuationEntry at the stack pointer of its frame.
func (vm *VM) IsContinuationEntry(b *Blob) bool {
	return b.Kind == NativeWrapper && b.Method != nil && b.Method.Full() == "jdk.internal.vm.Continuation.enterSpecial"
}

// VirtualEntry reports whether the ContinuationEntry that begins with these bytes belongs to a virtual thread. args is
// the largest number of bytes of its lowest frame's arguments.
func (vm *VM) VirtualEntry(entry []byte) (virtual bool, args uint64) {
	if len(entry) < entrySize {
		return false, 0
	}
	return offset(entryFlags).u32(entry) != 0, uint64(max(0, offset(entryArgSize).i32(entry))) * 8
}

// EntryBytes is the number of bytes of a ContinuationEntry that VirtualEntry needs.
const EntryBytes = entrySize
