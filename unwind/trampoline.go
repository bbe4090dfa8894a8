package unwind

// maxTrampoline bounds the length of a trampoline's code.
const maxTrampoline = 16

// overTrampoline follows a jump that stands outside all generated code but leads into it. The archive of class data of
// JDK 9 to 15 holds such jumps as the entries of shared methods, because the archive's addresses are fixed and those of
// the interpreter and adapters are not (memory/metaspaceShared.cpp, i2i_entry_code_buffers;
// interpreter/abstractInterpreter.cpp, update_cds_entry_table). A jump changes neither the stack nor a register by
// which a frame is found.
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
