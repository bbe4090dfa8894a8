package unwind

const maxTrampoline = 16

// overTrampoline follows a jump that is outside of all generated code but leads into it. In JDK 9 to 15, the archive of
// class data has such jumps as the entries of shared methods, because the archive's addresses are fixed and those of
// the interpreter and adapters are not (memory/metaspaceShared.cpp, i2i_entry_code_buffers;
// interpreter/abstractInterpreter.cpp, update_cds_entry_table). The jump changes neither the stack nor a register that
// is needed to find a frame.
func (w *Walker) overTrampoline() bool {
	if w.vm == nil || !w.cur.exact {
		return false
	}
	code := w.code[:maxTrampoline]
	if w.t.Read(w.cur.pc, code) != nil {
		return false
	}
	to, ok := w.cpu.Trampoline(code, &w.cur.regs)
	if !ok || !w.vm.InCode(to) {
		return false
	}
	w.cur.pc, w.cur.regs[w.cpu.PC] = to, to
	return true
}
