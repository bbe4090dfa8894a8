package unwind

import (
	"encoding/binary"

	"goprof/arch"
	"goprof/vmstructs"
)

// On-stack replacement: the interpreter executes a backward branch of a loop that has been compiled in the meantime.
// The interpreter removes its own frame and jumps into the OSR method, which makes a new frame (templateTable_*.cpp,
// branch). For a few instructions the method has no frame at all, although it has not ended. The target of the jump is
// in a field of the nmethod. So it shows which method it is.

// emitReplaced emits a method in on-stack replacement, between its interpreted and its compiled frame.
func (w *Walker) emitReplaced(e arch.Exit) bool {
	if e.Through.Kind != arch.AtMem || !w.isKnown(int(e.Through.Reg)) {
		return false
	}
	var word [8]byte
	if w.t.Read(w.cur.regs[e.Through.Reg]+uint64(int64(e.Through.Off)), word[:]) != nil {
		return false
	}
	entry := binary.LittleEndian.Uint64(word[:])
	b, err := w.vm.Blob(entry)
	if err != nil || b.OSREntry != entry || entry == 0 || b.Method == nil {
		return false
	}
	w.proof.Blob(b)
	w.emitInterpreted(b.Method, b.EntryBCI)
	return true
}

// replacedAt finds the bytecode index of a frame that is about to be replaced. In JDK 8 the code of a branch keeps the
// OSR nmethod in the register of the bytecode pointer, and asks the VM to copy the locals before it removes the frame
// (templateTable_x86_64.cpp, branch; SharedRuntime::OSR_migration_begin). So the frame's slot for the bytecode pointer
// also has the nmethod.
func (w *Walker) replacedAt(m *vmstructs.Method, nmethod uint64) (int32, bool) {
	b, err := w.vm.BlobAt(nmethod)
	if err != nil || !b.OSR || b.Method == nil || b.Method.Addr != m.Addr {
		return 0, false
	}
	w.proof.Blob(b)
	return b.EntryBCI, true
}
