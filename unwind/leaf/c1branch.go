package leaf

import (
	"slices"

	"goprof/arch"
	"goprof/vmstructs"
)

// C1 makes branches for its checks, such as null checks. Such a branch leads to code of the VM, and the record there
// belongs to the check. Other branches come from the program. They may lead straight to an allocation, or to a call of
// Java. The record there describes the code behind the branch, perhaps of another inlined method.

// branchOfC1 returns the evidence of a branch in C1's code that leads to an allocation or to a call of Java. Only an
// intrinsic method has such a slow path. All other such branches come from the program.
func (q *question) branchOfC1(n int32, e evidence) evidence {
	m := q.code
	if cast := q.castAt(n); cast.kind != noEvidence {
		return cast
	}
	if m.testsArithmetic(n) || m.passesLoop(n) || m.isOfStub(q.blob, n) {
		return evidence{}
	}
	if q.blob.Level == levelProfiled && m.dataAt(n, q.vm.IsProfile) != 0 {
		return evidence{} // a branch of a profile: see counter.go
	}
	s := q.methodsOf(e)
	if s == nil {
		return e
	}
	if c := q.bytecodeOf(s[0]); c != nil && isInvoke(c.Op) && q.invoked(s[0].Method, c).Intrinsic {
		return e
	}
	if m.isOfProgram(n) {
		e.outer = q.behindBranch(s)
	}
	return e
}

// isOfProgram reports whether a branch may come from a bytecode, because it compares two values. C1 itself makes two
// comparisons: whether a divisor is -1 (c1_LIRAssembler_x86.cpp, corrected_idivl), and one of the result of an
// exchange.
func (m *codeMap) isOfProgram(n int32) bool {
	compare, branch := m.comparisonAndBranch(n)
	if branch == notInCode {
		return false
	}
	is, ok := m.cpu.Condition(m.code, m.list[compare].at, m.list[branch].at)
	return ok && !(is.Constant && is.Value == -1)
}

// behindBranch returns how many of the methods at a branch's target cannot have the branch, counted from the innermost
// one: they have no bytecode that branches to the target. The branch belongs to a caller into which these methods are
// inlined.
func (f *Finder) behindBranch(s []vmstructs.Scope) (outer uint8) {
	for i := 0; i+1 < len(s) && outer < maxInlineLevel; i++ {
		if slices.ContainsFunc(f.bytecodes(s[i].Method), func(c vmstructs.Bytecode) bool {
			return c.Branches() && (c.BCI < s[i].BCI || c.Target >= 0 && c.Target <= s[i].BCI)
		}) {
			break
		}
		outer++
	}
	return outer
}

// testsArithmetic reports whether a branch tests flags that arithmetic right before it sets, as C1 does in the loop
// that clears a new array.
func (m *codeMap) testsArithmetic(n int32) bool {
	before := m.before(n)
	if before == notInCode {
		return false
	}
	o, ok := m.operands(before)
	own, known := m.operands(n)
	return ok && o.Computes && m.list[before].base == arch.BaseNone && known && own.Reads == 0
}

// passesLoop reports whether a branch leads past a loop that ends right before the branch's target, as C1 does with the
// loop that clears a new array.
func (m *codeMap) passesLoop(n int32) bool {
	end := m.before(m.target(n))
	if end == notInCode || m.list[end].flow != arch.FlowBranch || m.target(end) == notInCode {
		return false
	}
	begin := m.list[m.target(end)].at
	return begin > m.list[n].at && begin <= m.list[end].at
}

// maxStub bounds the instructions of a barrier's stub behind its branch.
const maxStub = 6

// isOfStub reports whether a branch is in the stub of a collector's barrier, behind all other code. The branch and the
// stub's last jump have the same target, and the stub's calls have no record (gc/g1/c1/g1BarrierSetC1.hpp,
// G1PostBarrierStub).
func (m *codeMap) isOfStub(b *vmstructs.Blob, n int32) bool {
	back, calls := m.target(n), false
	for range maxStub {
		if n = m.next(n); n == notInCode {
			return false
		}
		switch m.list[n].flow {
		case arch.FlowNext:
		case arch.FlowCall:
			calls = !b.HasPcDesc(b.Begin + uint64(m.end(n)))
		case arch.FlowJump:
			return calls && m.target(n) == back
		default:
			return false
		}
	}
	return false
}
