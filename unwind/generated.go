package unwind

import (
	"goprof/profile"
	"goprof/vmstructs"
)

func (w *Walker) stepGenerated() profile.Reason {
	pc := w.cur.pc
	if w.vm.InInterpreter(pc) {
		return w.stepInterpreted()
	}
	if pc == w.vm.CallStubReturn() {
		return w.stepEntry()
	}
	b, err := w.vm.Blob(pc)
	if err != nil {
		return profile.NotCode
	}
	w.proof.Blob(b)
	switch b.Kind {
	case vmstructs.Nmethod:
		return w.stepCompiled(b)
	case vmstructs.NativeWrapper:
		if why := w.passEntry(b); why != profile.Whole {
			return why
		}
		return w.stepCompiled(b)
	case vmstructs.Deopt, vmstructs.UncommonTrap:
		return w.stepDeopt(b)
	}
	if w.isReturnBarrier(b) {
		if w.heapFrames() {
			return w.carrierFrames()
		}
		w.out.Mounted = true // only virtual threads have the barrier below their frames
	}
	return w.stepStub(b)
}

// plausible reports whether pc can be the return address of a call.
func (w *Walker) plausible(pc uint64) bool {
	pc = w.strip(pc)
	if !w.vm.InCode(pc) {
		return w.native(pc, false) != nil
	}
	if w.vm.InInterpreter(pc) || pc == w.vm.CallStubReturn() {
		return true
	}
	b, err := w.vm.Blob(pc)
	if err != nil || pc < b.Begin {
		return false
	}
	switch b.Kind {
	case vmstructs.Nmethod:
		// Calls of leaf stubs have no record.
		return b.HasPcDesc(pc) || isDeoptHandler(b, pc) || w.afterCall(pc, b)
	case vmstructs.VtableStub, vmstructs.MethodHandleIntrinsic:
		return false // they jump and do not call
	}
	return w.vm.ReturnBarrier(b, pc) || w.afterCall(pc, b)
}

// callSite records whether pc follows a call.
type callSite struct {
	blob *vmstructs.Blob // whose code it is, nil for code that never changes
	is   bool
}

func (w *Walker) afterCall(pc uint64, b *vmstructs.Blob) bool {
	if c, ok := w.calls[pc]; ok && c.blob == b {
		return c.is
	}
	n := w.cpu.MaxCall
	is := w.t.Read(pc-uint64(n), w.code[:n]) == nil && w.cpu.EndsInCall(w.code[:n])
	w.calls[pc] = callSite{b, is}
	return is
}
