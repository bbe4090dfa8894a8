package unwind

import (
	"goprof/arch"
	"goprof/vmstructs"
)

// C1 makes a cast in one piece (c1/c1_LIRAssembler_x86.cpp, emit_typecheck_helper): null is let through, the class that
// is asked for and that of the object are put into registers, and one is compared with what the other has above it. If
// that is not the class, a branch leads to the slow way, whose call has the cast's record.

// maxCast bounds the instructions from the load of an object's class to that branch.
const maxCast = 8

// castAt returns the evidence of the cast that an instruction of C1's code is part of.
func (w *Walker) castAt(b *vmstructs.Blob, m *codeMap, n int32) evidence {
	if n = m.endsCast(n); n == notInCode {
		return evidence{}
	}
	class := w.classBefore(m, n)
	for range maxCast {
		if n == notInCode || int(n) >= len(m.list) {
			break
		}
		i := &m.list[n]
		switch {
		case i.flow == arch.FlowBranch && class:
			if e := w.evidenceAt(b, m, n); (e.kind == atCheck || e.kind == atTrap) && w.casts(b, e) {
				return e
			}
			return evidence{}
		case i.flow != arch.FlowNext:
			return evidence{}
		case w.readsClass(i):
			class = true
		case i.stores || !class && i.kindOf != arch.KindLong && i.kindOf != arch.KindConst:
			return evidence{}
		}
		n = m.next(n)
	}
	return evidence{}
}

// endsCast returns the branch to the slow way if an instruction is one of the two behind it that end a cast: a jump to
// the next one, and the copy of the object there.
func (m *codeMap) endsCast(n int32) int32 {
	if n < 0 || int(n) >= len(m.list) {
		return notInCode
	}
	jump, before := n, m.before(n)
	if m.list[n].kindOf == arch.KindCopy && before != notInCode {
		jump = before
	}
	if m.list[jump].flow != arch.FlowJump || m.target(jump) != m.next(jump) {
		return n
	}
	return m.before(jump)
}

// classBefore reports whether the class of an object is loaded before an instruction, and nothing is stored since.
func (w *Walker) classBefore(m *codeMap, n int32) bool {
	for range maxCast {
		if n = m.before(n); n == notInCode || m.list[n].flow != arch.FlowNext || m.list[n].stores {
			return false
		}
		if w.readsClass(&m.list[n]) {
			return true
		}
	}
	return false
}

// casts reports whether evidence is that of a bytecode that asks of which class an object is.
func (w *Walker) casts(b *vmstructs.Blob, e evidence) bool {
	s := w.told(b, e)
	if s == nil {
		return false
	}
	c := w.bytecodeOf(s[0])
	return c != nil && (c.Op == vmstructs.OpCheckcast || c.Op == vmstructs.OpInstanceof || c.Op == vmstructs.OpAastore)
}
