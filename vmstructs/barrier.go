package vmstructs

import "strings"

// ReturnBarrier reports whether pc is where the lowest frame of a virtual thread returns
// to while its callers are still in the heap: StubRoutines::_cont_returnBarrier
// (stubGenerator_*.cpp, generate_cont_thaw). The tables export it since 27; before,
// .symtab has it; else any return into a continuation stub is taken for it, for those
// stubs do not call Java.
func (vm *VM) ReturnBarrier(b *Blob, pc uint64) bool {
	if vm.barrier == 0 {
		vm.barrier = vm.findReturnBarrier()
	}
	if vm.barrier != noBarrier {
		return pc == vm.barrier
	}
	return strings.HasPrefix(b.Name, "StubRoutines (continuation") && pc != vm.callRet
}

// noBarrier: nothing tells where the return barrier is.
const noBarrier = ^uint64(0)

func (vm *VM) findReturnBarrier() uint64 {
	at, ok := vm.l.stubs.entries["cont_returnBarrier"]
	if !ok {
		var err error
		if at, err = vm.t.Global(libjvm, "_ZN12StubRoutines19_cont_returnBarrierE"); err != nil {
			return noBarrier
		}
	}
	pc, err := vm.mem.Ptr(at)
	if err != nil || pc == 0 {
		return noBarrier
	}
	return pc
}
