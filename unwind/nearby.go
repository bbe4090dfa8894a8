package unwind

import "goprof/vmstructs"

// Compilers record which methods are inlined where, and at which line, at calls and at safepoints
// only. A thread that was stopped is hardly ever at one of them, so its methods must be those of a
// record nearby. The next one by address, which HotSpot itself would take (nmethod::pc_desc_near),
// is often that of another branch, laid out there because it is never run. The one to which the
// code goes next is right nearly twice as often: docs/accuracy.md.

// scopes returns the methods at pc. exact: the thread is at that instruction, has not called there.
func (w *Walker) scopes(b *vmstructs.Blob, pc uint64, exact bool) ([]vmstructs.Scope, error) {
	if !exact || b.Kind != vmstructs.Nmethod {
		return w.vm.Scopes(b, pc, true)
	}
	if w.vm.FullRecords(b) {
		return w.vm.Scopes(b, pc, w.isPoll(b, pc))
	}
	if b.HasPcDesc(pc) {
		return w.vm.Scopes(b, pc, true)
	}
	if at, ok := w.recordNearby(b, pc); ok {
		return w.vm.Scopes(b, at, true)
	}
	return b.OwnScope(), nil
}

// isPoll reports whether pc is recorded as the place of a poll. Of all that is recorded this alone tells of
// the instruction that stands there. Every other record, a call's return address too, is the end of the
// instructions that it tells of (docs/decisions/0004-the-leaf.md).
func (w *Walker) isPoll(b *vmstructs.Blob, pc uint64) bool {
	if !w.vm.IsSafepoint(b, pc) {
		return false
	}
	call := w.code[:w.cpu.MaxCall]
	begin := pc - uint64(len(call))
	return begin < b.Begin || w.t.Read(begin, call) == nil && !w.cpu.EndsInCall(call)
}

// recordNearby finds the record that tells best what the code at pc is. Where there is none on its
// way, as in a frame that is being built or is gone, the code is the owner's.
func (w *Walker) recordNearby(b *vmstructs.Blob, pc uint64) (uint64, bool) {
	if pc < b.Begin+uint64(max(b.FrameComplete, 0)) {
		return 0, false
	}
	code, err := w.vm.Code(b, w.code)
	if err != nil {
		return 0, false
	}
	w.code = code[:cap(code)]
	return w.tracer.Ahead(code, b.Begin, pc, b.HasPcDesc)
}
