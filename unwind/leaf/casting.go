package leaf

import (
	"goprof/arch"
	"goprof/vmstructs"
)

// C1 makes a cast in one piece (c1/c1_LIRAssembler_x86.cpp, emit_typecheck_helper). A null reference passes. For other
// references the code loads the wanted class and the object's class. Then it compares the wanted class with an entry in
// the list of superclasses of the object's class. If they differ, a branch leads to the slow path, and the call there
// has the cast's record. If the wanted class may be in the list of secondary superclasses, a call without a record
// searches that list. Two branches before that call lead to the end of the cast.

// maxCast bounds the instructions from the load of the wanted class to the last branch.
const maxCast = 16

func (p *place) cast() evidence { return p.castAt(p.n) }

// castAt returns the evidence of the cast that an instruction of C1's code is part of.
func (q *question) castAt(n int32) evidence {
	if e := q.passesNull(n); e.kind != noEvidence {
		return e
	}
	return q.testsClass(n)
}

// testsClass is castAt without the cast's first branch, for null.
func (q *question) testsClass(n int32) evidence {
	m := q.code
	class, passed := q.classBefore(n)
	for range maxCast {
		if n == notInCode || int(n) >= len(m.list) {
			break
		}
		i := &m.list[n]
		switch {
		case i.flow == arch.FlowBranch && class:
			to := m.target(n)
			if e := q.slowCast(n); e.kind != noEvidence {
				if passed == notInCode || q.castBefore(passed).scope == e.scope {
					return e
				}
				return evidence{}
			}
			if to == notInCode || passed != notInCode && passed != to {
				return evidence{}
			}
			passed = to
		case i.flow == arch.FlowCall && class && !q.blob.HasPcDesc(q.blob.Begin+uint64(m.end(n))):
		case i.flow != arch.FlowNext:
			return evidence{}
		case q.readsClass(i):
			class = true
		case i.stores && i.base != arch.BaseStack:
			return evidence{}
		case !class && i.kindOf != arch.KindLong && i.kindOf != arch.KindConst:
			return evidence{}
		}
		n = m.next(n)
	}
	return evidence{}
}

// classBefore reports whether the class of an object is loaded before an instruction, with no store in between. passed
// is the target of the branches in between, notInCode if there are none.
func (q *question) classBefore(n int32) (class bool, passed int32) {
	m := q.code
	passed = notInCode
	for range maxCast {
		if n = m.before(n); n == notInCode {
			break
		}
		i := &m.list[n]
		switch {
		case i.flow == arch.FlowBranch:
			to := m.target(n)
			if to == notInCode || passed != notInCode && passed != to || q.slowCast(n).kind != noEvidence {
				return false, notInCode
			}
			passed = to
		case i.flow == arch.FlowCall && !q.blob.HasPcDesc(q.blob.Begin+uint64(m.end(n))):
		case i.flow != arch.FlowNext || i.stores && i.base != arch.BaseStack:
			return false, notInCode
		case q.readsClass(i):
			return true, passed
		}
	}
	return false, notInCode
}

// castBefore returns the evidence of the cast that ends before an instruction, with a branch to the slow path and
// perhaps a jump to that instruction.
func (q *question) castBefore(n int32) evidence {
	if n = q.code.branchBefore(n); n == notInCode {
		return evidence{}
	}
	return q.slowCast(n)
}

// branchBefore returns the branch right before an instruction, or before a jump to it, notInCode if there is none.
func (m *codeMap) branchBefore(n int32) int32 {
	before := m.before(n)
	if before != notInCode && m.list[before].flow == arch.FlowJump && m.target(before) == n {
		before = m.before(before)
	}
	if before == notInCode || m.list[before].flow != arch.FlowBranch {
		return notInCode
	}
	return before
}

// passesNull returns the evidence of a cast for its first branch, which leads to the end of the cast if the reference
// is null.
func (q *question) passesNull(n int32) evidence {
	m := q.code
	if m.list[n].kindOf == arch.KindCompare {
		n = m.next(n)
	}
	if n == notInCode || m.list[n].flow != arch.FlowBranch || m.target(n) == notInCode || m.next(n) == notInCode {
		return evidence{}
	}
	e := q.castBefore(m.target(n))
	if next := m.next(n); e.kind == noEvidence || m.list[next].flow != arch.FlowNext ||
		q.testsClass(next).scope != e.scope {
		return evidence{}
	}
	return e
}

// slowCast returns the evidence of a cast for its branch to the slow path.
func (q *question) slowCast(n int32) evidence {
	to := q.detour(q.code.target(n))
	if to.record == 0 || to.makes || q.recordedCallee(to.record) == callsJava {
		return evidence{}
	}
	_, reason := q.branchKind(to)
	if e := (evidence{kind: atCheck, scope: to.record, reason: reason}); q.mayCast(e) {
		return e
	}
	return evidence{}
}

// mayCast reports whether C1 makes a cast for the bytecode of evidence. If C1 knows which method an invokeinterface
// calls, it casts the receiver to the interface (c1/c1_GraphBuilder.cpp, invoke).
func (q *question) mayCast(e evidence) bool {
	op := q.opcodeOf(e)
	return casts(op) || op == vmstructs.OpInvokeInterface
}

// casts reports whether a bytecode tests an object's class.
func casts(op uint8) bool {
	return op == vmstructs.OpCheckcast || op == vmstructs.OpInstanceof || op == vmstructs.OpAastore
}

// opcodeOf returns the opcode of the bytecode of evidence, 0 if it has none.
func (q *question) opcodeOf(e evidence) uint8 {
	if s := q.methodsOf(e); s != nil {
		if c := q.bytecodeOf(s[0]); c != nil {
			return c.Op
		}
	}
	return 0
}
