package leaf

import (
	"goprof/arch"
	"goprof/vmstructs"
)

// A check of a class takes several instructions. Only the last, the comparison and its branch, is evidence by itself.

// maxClassChain bounds the instructions that hand a class on to its check.
const maxClassChain = 5

// class returns the evidence of the check of a class that the instruction is part of.
func (p *place) class() evidence { return p.classAt(p.n) }

// classAt returns the evidence of the check of a class, or of a cast's slow path, to which an instruction belongs. Such
// an instruction loads an object's class, computes an address from it, loads a class from the list of its superclasses,
// or makes the constant with which the class is compared. Each of these instructions uses the value of the one before
// it. The comparison uses the value of the last.
func (q *question) classAt(n int32) evidence {
	n = q.handedTo(n)
	if n == notInCode {
		return evidence{}
	}
	if n = q.code.next(n); n == notInCode || q.code.list[n].flow != arch.FlowBranch {
		return evidence{}
	}
	e := q.evidenceAt(n)
	if e.kind == atCheck && (e.reason == vmstructs.TrapClass || e.reason == vmstructs.NoTrap && casts(q.opcodeOf(e))) {
		return e
	}
	return evidence{}
}

// handedTo returns the comparison that gets the class from an instruction, notInCode if there is none.
func (q *question) handedTo(n int32) int32 {
	m := q.code
	for range maxClassChain {
		if !q.handsClass(n) {
			break
		}
		if n = m.taker(n); n == notInCode || q.readsHeader(&m.list[n]) {
			break // the instruction hands on the object, not its class
		}
		if m.list[n].kindOf == arch.KindCompare {
			return n
		}
	}
	return notInCode
}

func (q *question) handsClass(n int32) bool {
	m := q.code
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

// readsClass reports whether an instruction may read an object's class. The class is behind the first word of the
// header (oops/oop.hpp). With compact headers the class is part of that word, and an array's length or the first field
// is behind it.
func (f *Finder) readsClass(i *instruction) bool {
	return i.base == arch.BaseOther && i.disp == maxHeader && !f.vm.CompactHeaders()
}

// readsHeader reports whether an instruction may read the part of an object's header that has its class.
func (f *Finder) readsHeader(i *instruction) bool {
	return f.readsClass(i) || f.vm.CompactHeaders() && i.base == arch.BaseOther && i.disp >= 0 && i.disp < maxHeader
}
