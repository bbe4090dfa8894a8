package leaf

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
func (p *place) branchKind(to detour) (evidenceKind, vmstructs.TrapReason) {
	reason := vmstructs.NoTrap
	switch p.recordedCallee(to.record) {
	case callsTrap:
		switch reason = p.vm.TrapReason(to.request); reason {
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
func (p *place) comparison(n int32) evidence {
	m := p.code
	i := &m.list[n]
	class := p.readsClass(i)
	if p.blob.Level != levelC2 || i.kindOf != arch.KindCompare || i.base == arch.BaseOther && !class {
		return evidence{}
	}
	if next := m.next(n); next != notInCode && m.list[next].flow == arch.FlowBranch {
		if e := p.evidenceAt(next); e.kind == atCheck && (!class || e.reason == vmstructs.TrapClass) {
			return e
		}
	}
	return evidence{}
}

// readsClass reports whether an instruction may read an object's class. It stands behind the first word of the header
// (oops/oop.hpp), unless headers are compact: then it is part of that word, and an array's length or the first field
// stands behind.
func (f *Finder) readsClass(i *instruction) bool {
	return i.base == arch.BaseOther && i.disp == maxHeader && !f.vm.CompactHeaders()
}

// readsHeader reports whether an instruction may read the part of an object's header from which its class is known.
func (f *Finder) readsHeader(i *instruction) bool {
	return f.readsClass(i) || f.vm.CompactHeaders() && i.base == arch.BaseOther && i.disp >= 0 && i.disp < maxHeader
}

// maxClassChain bounds the instructions that hand a class on to its check.
const maxClassChain = 5

// classAt returns the evidence of the check of a class, or of the slow path of a cast, for which an instruction does
// something: it loads an object's class, makes an address of that, loads a class from the list of those above it, or
// makes the constant with which the class is compared. Each hands its value on to the next one, and the last one to the
// comparison.
func (p *place) classAt(n int32) evidence {
	n = p.handedTo(n)
	if n == notInCode {
		return evidence{}
	}
	if n = p.code.next(n); n == notInCode || p.code.list[n].flow != arch.FlowBranch {
		return evidence{}
	}
	e := p.evidenceAt(n)
	if e.kind == atCheck && (e.reason == vmstructs.TrapClass || e.reason == vmstructs.NoTrap && casts(p.opcodeOf(e))) {
		return e
	}
	return evidence{}
}

// handedTo returns the comparison to which an instruction hands a class on, notInCode if it hands none on.
func (p *place) handedTo(n int32) int32 {
	m := p.code
	for range maxClassChain {
		if !p.handsClass(n) {
			break
		}
		if n = m.taker(n); n == notInCode || p.readsHeader(&m.list[n]) {
			break // what is handed on is the object, and not its class
		}
		if m.list[n].kindOf == arch.KindCompare {
			return n
		}
	}
	return notInCode
}

// handsClass reports whether an instruction may be one of those that hand a class on.
func (p *place) handsClass(n int32) bool {
	m := p.code
	i := &m.list[n]
	if i.flow != arch.FlowNext {
		return false
	}
	if i.loads && i.base == arch.BaseOther || m.makesConstant(n) {
		return true
	}
	o, ok := m.operands(n)
	return ok && o.Computes
}

// surelyOf reports whether a check is certainly that of the bytecode to which its branch leads. A method that is
// inlined and returns a boolean has a branch of its own, and the caller another one for the result. C2 makes one of
// both (opto/split_if.cpp).
func (f *Finder) surelyOf(e evidence, own []vmstructs.Scope) bool {
	if e.reason != vmstructs.TrapBranch {
		return true
	}
	code := f.bytecodes(own[0].Method)
	i := vmstructs.BytecodeAt(code, own[0].BCI)
	return i > 0 && !isInvoke(code[i-1].Op)
}
