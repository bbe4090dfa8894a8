package unwind

import "goprof/vmstructs"

// Compilers record which methods are inlined where, and at which line, at calls and at safepoints
// only. A thread that was stopped is hardly ever at one of them, so its methods must be those of a
// record nearby. The next one by address, which HotSpot itself would take (nmethod::pc_desc_near),
// is often that of another branch, laid out there because it is never run. The one to which the
// code goes next is right nearly twice as often: docs/accuracy.md.

// scopes returns the methods at pc. exact: the thread is at that instruction, has not called there.
func (w *Walker) scopes(b *vmstructs.Blob, pc uint64, exact bool) ([]vmstructs.Scope, error) {
	if !exact || b.Kind != vmstructs.Nmethod || b.HasPcDesc(pc) {
		return w.vm.Scopes(b, pc, true)
	}
	if at, ok := w.recordNearby(b, pc); ok {
		return w.vm.Scopes(b, at, true)
	}
	return b.OwnScope(), nil
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
	if w.recordsAll(b, code) {
		return b.RecordBefore(pc)
	}
	return w.tracer.Ahead(code, b.Begin, pc, b.HasPcDesc)
}

// recordsAll reports whether the compiler has recorded where each instruction comes from, and not
// calls alone: with -XX:+DebugNonSafepoints, which agents and JFR switch on. Then a record tells
// of what stands behind it. Few records stand elsewhere than behind a call without it (polls,
// implicit null checks), two of three with it. A large method has tens of thousands: they are
// counted once, not for each pc.
func (w *Walker) recordsAll(b *vmstructs.Blob, code []byte) bool {
	if all, ok := w.detailed[b]; ok {
		return all
	}
	calls, others := 0, 0
	for pc := range b.Records() {
		end := pc - b.Begin
		if end >= uint64(w.cpu.MaxCall) && w.cpu.EndsInCall(code[end-uint64(w.cpu.MaxCall):end]) {
			calls++
		} else {
			others++
		}
	}
	w.detailed[b] = others > calls
	return others > calls
}
