package unwind

import (
	"goprof/arch"
	"goprof/vmstructs"
)

// Some bytecodes check something before they do their work: that a reference is not null, that an index lies within an
// array's bounds, of which class an object is. C2 makes of a check a comparison and a branch. If the check fails, the
// branch leads to the uncommon trap, where the interpreter does the bytecode again, or to the VM's own code. The record
// of that call has the bytecode, so the comparison and the branch are known to be that bytecode's. The trap's argument
// says why it was called (vmstructs.TrapReason).

// branchKind tells what a branch is that leads to a call with a record. It is a check if nothing is done before the
// call but for the call: other work on the way may be that of other bytecodes, and so may the branch.
func (w *Walker) branchKind(b *vmstructs.Blob, m *codeMap, to detour) (evidenceKind, vmstructs.TrapReason) {
	reason := vmstructs.NoTrap
	switch w.recordedCallee(b, m, to.record) {
	case callsTrap:
		switch reason = w.vm.TrapReason(to.request); reason {
		case vmstructs.NoTrap:
			return atTrap, reason
		case vmstructs.TrapBeforeLoop:
			return noEvidence, reason
		}
	case callsJava:
		return atTrap, reason
	}
	if to.works {
		return atTrap, vmstructs.NoTrap
	}
	return atCheck, reason
}

// comparison returns the evidence of the branch that asks for the result of a comparison of C2's. What is compared with
// memory is not told, unless it is an object's class: C2 makes one instruction of a load and a comparison, which may be
// those of two bytecodes.
func (w *Walker) comparison(b *vmstructs.Blob, m *codeMap, n int32) evidence {
	i := &m.list[n]
	class := w.readsClass(i)
	if b.Level != levelC2 || i.kindOf != arch.KindCompare || i.base == arch.BaseOther && !class {
		return evidence{}
	}
	if next := m.next(n); next != notInCode && m.list[next].flow == arch.FlowBranch {
		if e := w.evidenceAt(b, m, next); e.kind == atCheck && (!class || e.reason == vmstructs.TrapClass) {
			return e
		}
	}
	return evidence{}
}

// readsClass reports whether an instruction may read an object's class. It stands behind the first word of the header
// (oops/oop.hpp), unless headers are compact: then it is part of that word, and an array's length or the first field
// stands behind.
func (w *Walker) readsClass(i *instruction) bool {
	return i.base == arch.BaseOther && i.disp == maxHeader && !w.vm.CompactHeaders()
}

// maxClassConstant bounds the instructions that put a class into a register. A compressed class has 32 bits: arm64
// needs two.
const maxClassConstant = 2

// classAt returns the evidence of the check for which an instruction loads an object's class. The check compares the
// register into which the class is loaded: C2 may load the class for the next check before this one. On arm64 a
// comparison cannot hold the expected class. C2 puts that class into a register in between.
func (w *Walker) classAt(b *vmstructs.Blob, m *codeMap, n int32) evidence {
	if i := &m.list[n]; i.flow != arch.FlowNext || !w.readsClass(i) {
		return evidence{}
	}
	next := m.next(n)
	for range maxClassConstant {
		if next != notInCode && m.list[next].kindOf == arch.KindConst {
			next = m.next(next)
		}
	}
	if next == notInCode || m.list[next].kindOf != arch.KindCompare || m.list[next].base != arch.BaseNone ||
		m.regs(n)&m.regs(next) == 0 {
		return evidence{}
	}
	if e := w.evidenceAt(b, m, next); e.kind == atCheck && e.reason == vmstructs.TrapClass {
		return e
	}
	return evidence{}
}

// surelyOf reports whether a check is certainly that of the bytecode to which its branch leads. A method that is
// inlined and returns a boolean has a branch of its own, and the caller another one for the result. C2 makes one of
// both (opto/split_if.cpp).
func (w *Walker) surelyOf(e evidence, own []vmstructs.Scope) bool {
	if e.reason != vmstructs.TrapBranch {
		return true
	}
	code := w.bytecodes(own[0].Method)
	i := vmstructs.BytecodeAt(code, own[0].BCI)
	return i > 0 && !isInvoke(code[i-1].Op)
}
