package unwind

import (
	"goprof/arch"
	"goprof/vmstructs"
)

// Some bytecodes check something before they do their work: that a reference is not null, that an index lies within an
// array's bounds, of which class an object is. C2 makes of a check a comparison and a branch. If the check fails, the
// branch leads to the uncommon trap, where the interpreter does the bytecode again, or to the VM's own code. The record of
// that call has the bytecode, so the comparison and the branch are known to be that bytecode's. HotSpot's trap also says
// why it was called (vmstructs.TrapReason).

// branchKind tells what a branch is that leads to a call with a record, if a constant was put into the register of the
// call's first argument on the way.
func (w *Walker) branchKind(b *vmstructs.Blob, m *codeMap, to uint64, request int32) (evidenceKind, vmstructs.TrapReason) {
	switch w.recordedCallee(b, m, to) {
	case callsVM:
		return atCheck, vmstructs.NoTrap
	case callsTrap:
		switch reason := w.vm.TrapReason(request); reason {
		case vmstructs.NoTrap:
		case vmstructs.TrapBeforeLoop:
			return noEvidence, reason
		default:
			return atCheck, reason
		}
	}
	return atTrap, vmstructs.NoTrap
}

// comparison returns the evidence of the branch that asks for the result of a comparison. What is compared with memory
// is not told, unless it is an object's class: C2 makes one instruction of a load and a comparison, which may be those of
// two bytecodes.
func (w *Walker) comparison(b *vmstructs.Blob, m *codeMap, n int32) evidence {
	i := &m.list[n]
	class := i.readsClass()
	if i.kindOf != arch.KindCompare || i.base == arch.BaseOther && !class {
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
// (oops/oop.hpp), unless headers are compact: then it is part of that word.
func (i *instruction) readsClass() bool { return i.base == arch.BaseOther && i.disp == maxHeader }

// classAt returns the evidence of the check for which an instruction loads an object's class.
func (w *Walker) classAt(b *vmstructs.Blob, m *codeMap, n int32) evidence {
	if i := &m.list[n]; !i.readsClass() || i.flow != arch.FlowNext {
		return evidence{}
	}
	next := m.next(n)
	if next == notInCode || m.list[next].kindOf != arch.KindCompare || m.list[next].base != arch.BaseNone {
		return evidence{}
	}
	if e := w.evidenceAt(b, m, next); e.kind == atCheck && e.reason == vmstructs.TrapClass {
		return e
	}
	return evidence{}
}

// mayCheck reports whether a bytecode makes a check that fails for a reason. own is the bytecode of the record to which
// the branch leads.
func mayCheck(b, own *vmstructs.Bytecode, reason vmstructs.TrapReason) bool {
	op := b.Op
	invokes := isInvoke(op)
	loads := op >= vmstructs.OpIaload && op <= vmstructs.OpSaload
	stores := op >= vmstructs.OpIastore && op <= vmstructs.OpSastore
	casts := op == vmstructs.OpCheckcast || op == vmstructs.OpInstanceof || op == vmstructs.OpAastore
	switch reason {
	case vmstructs.TrapRange:
		return loads || stores || invokes
	case vmstructs.TrapClass:
		return casts || invokes
	case vmstructs.TrapNull:
		return loads || stores || casts || invokes || op == vmstructs.OpGetfield || op == vmstructs.OpPutfield ||
			op == vmstructs.OpArraylength || op == vmstructs.OpAthrow || op == vmstructs.OpMonitorenter || b.Target >= 0
	case vmstructs.TrapDivision:
		return op >= vmstructs.OpIdiv && op <= vmstructs.OpLrem || invokes
	case vmstructs.TrapBranch:
		return b.Branches()
	case vmstructs.NoTrap, vmstructs.TrapOther:
		return op == own.Op
	}
	return false
}

// surelyOf reports whether a check is certainly that of the bytecode to which its branch leads. A method that is inlined
// and returns a boolean has a branch of its own, and the caller another one for the result. C2 makes one of both
// (opto/split_if.cpp).
func (w *Walker) surelyOf(e evidence, own []vmstructs.Scope) bool {
	if e.reason != vmstructs.TrapBranch {
		return true
	}
	code := w.bytecodes(own[0].Method)
	i := vmstructs.BytecodeAt(code, own[0].BCI)
	return i > 0 && !isInvoke(code[i-1].Op)
}

// maxAllocation bounds the instructions from where an allocation asks for room to the branch to its slow path, and from
// there to where the allocation is done.
const maxAllocation = 12

// allocationAt returns the evidence of the allocation that an instruction is part of. C2 makes an object in the thread's own
// buffer (opto/macro.cpp, expand_allocate_common): it loads where the buffer has room, compares with the buffer's end,
// branches to the slow path, notes how much room is left, and prefetches memory for the next objects.
func (w *Walker) allocationAt(b *vmstructs.Blob, m *codeMap, n int32) evidence {
	if i := &m.list[n]; i.kindOf == arch.KindPrefetch || w.asksForRoom(i) {
		if e := w.allocation(b, m, n, m.before); e.kind != noEvidence {
			return e
		}
	}
	for at, k := n, 0; at != notInCode && k < maxAllocation && m.list[at].flow == arch.FlowNext; at, k = m.before(at), k+1 {
		if w.asksForRoom(&m.list[at]) {
			return w.allocation(b, m, n, m.next)
		}
	}
	return evidence{}
}

// asksForRoom reports whether an instruction reads or writes how far the thread's buffer is filled.
func (w *Walker) asksForRoom(i *instruction) bool {
	return i.base == arch.BaseThread && i.disp == w.vm.AllocationTop() && i.flow == arch.FlowNext
}

// allocation returns the evidence of the branch to the slow path of an allocation, ahead of an instruction or before it.
func (w *Walker) allocation(b *vmstructs.Blob, m *codeMap, n int32, step func(int32) int32) evidence {
	for range maxAllocation {
		if n = step(n); n == notInCode {
			break
		}
		if f := m.list[n].flow; f == arch.FlowNext {
			continue
		} else if f != arch.FlowBranch {
			break
		}
		if e := w.evidenceAt(b, m, n); e.kind == atCheck && w.allocates(b, e) {
			return e
		}
		break
	}
	return evidence{}
}

// pollAt returns the evidence of the poll before which an instruction loads what the poll reads.
func (w *Walker) pollAt(b *vmstructs.Blob, m *codeMap, n int32) evidence {
	if i := m.list[n]; i.base != arch.BaseThread || i.flow != arch.FlowNext {
		return evidence{}
	}
	if next := m.next(n); next != notInCode && w.isPoll(b, b.Begin+uint64(m.list[next].at)) {
		return evidence{kind: atPoll, scope: b.Begin + uint64(m.list[next].at)}
	}
	return evidence{}
}

// allocates reports whether evidence is that of a bytecode that makes an object.
func (w *Walker) allocates(b *vmstructs.Blob, e evidence) bool {
	s := w.told(b, e)
	if s == nil {
		return false
	}
	code := w.bytecodes(s[0].Method)
	i := vmstructs.BytecodeAt(code, s[0].BCI)
	return i >= 0 && (code[i].Allocates() || isInvoke(code[i].Op))
}

// partAt returns the evidence of the check, the allocation or the poll that an instruction is part of.
func (w *Walker) partAt(b *vmstructs.Blob, m *codeMap, n int32) evidence {
	if n < 0 || int(n) >= len(m.list) || b.Level != levelC2 {
		return evidence{}
	}
	if e := w.classAt(b, m, n); e.kind != noEvidence {
		return e
	}
	if e := w.evidenceAt(b, m, n); e.kind != noEvidence && e.kind != atReturn {
		return e
	}
	if e := w.pollAt(b, m, n); e.kind != noEvidence {
		return e
	}
	if w.leavesAt(m, n) {
		return evidence{kind: atReturn}
	}
	return w.allocationAt(b, m, n)
}

// maxLeave bounds the instructions that leave a method: two that take down the frame, the poll, its branch, the return.
const maxLeave = 6

// leavesAt reports whether an instruction is one of those that leave the method which owns the code: from the one that
// takes down the frame to the return (x86.ad and aarch64.ad, MachEpilogNode).
func (w *Walker) leavesAt(m *codeMap, n int32) bool {
	leaves := m.list[n].kindOf == arch.KindLeave
	for at, k := n, 0; !leaves && at != notInCode && k < maxLeave; k++ {
		at = m.before(at)
		if at == notInCode || m.list[at].flow != arch.FlowNext && m.list[at].flow != arch.FlowBranch {
			break
		}
		leaves = m.list[at].kindOf == arch.KindLeave
	}
	if !leaves {
		return false
	}
	for at, k := n, 0; at != notInCode && k < maxLeave; at, k = m.next(at), k+1 {
		switch m.list[at].flow {
		case arch.FlowReturn:
			return true
		case arch.FlowNext, arch.FlowBranch:
		default:
			return false
		}
	}
	return false
}
