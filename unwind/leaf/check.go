package leaf

import (
	"strings"

	"goprof/arch"
	"goprof/vmstructs"
)

// Some bytecodes check something before they do their work: that a reference is not null, that an index lies within an
// array's bounds, or that an object is of some class. C2 makes a comparison and a branch for a check. If the check
// fails, the branch leads to the uncommon trap, where the interpreter executes the bytecode again, or to the VM's own
// code. The record of the call to the trap or to the VM names the bytecode. So the comparison and the branch belong to
// that bytecode. The trap's argument gives the reason (vmstructs.TrapReason).

// check returns the evidence of the check that the instruction is part of.
func (p *place) check() evidence {
	if e := p.evidenceAt(p.n); e.kind == atCheck {
		return e
	}
	return evidence{}
}

// branchKind returns the kind of evidence of a branch that leads to a call with a record. The branch is a check if all
// instructions before the call only prepare the call. Otherwise the work on the way, and so the branch, may belong to
// other bytecodes.
func (q *question) branchKind(to detour) (evidenceKind, vmstructs.TrapReason) {
	reason := vmstructs.NoTrap
	switch q.recordedCallee(to.record) {
	case callsTrap:
		switch reason = q.vm.TrapReason(to.request); reason {
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

// comparison returns, for a comparison of C2's, the evidence of the branch that uses its result. A comparison with
// memory is no evidence, unless it compares an object's class: C2 makes one instruction of a load and a comparison,
// which may come from two bytecodes.
func (q *question) comparison(n int32) evidence {
	m := q.code
	i := &m.list[n]
	class := q.readsClass(i)
	if q.blob.Level != levelC2 || i.kindOf != arch.KindCompare || i.base == arch.BaseOther && !class {
		return evidence{}
	}
	if next := m.next(n); next != notInCode && m.list[next].flow == arch.FlowBranch {
		if e := q.evidenceAt(next); e.kind == atCheck && (!class || e.reason == vmstructs.TrapClass) {
			return e
		}
	}
	return evidence{}
}

// surelyOf reports whether a check certainly belongs to the bytecode to which its branch leads. If an inlined method
// returns a boolean, the method has a branch, and its caller has another one for the result. C2 merges the two
// (opto/split_if.cpp).
func (f *Finder) surelyOf(e evidence, own []vmstructs.Scope) bool {
	if e.reason != vmstructs.TrapBranch {
		return true
	}
	code := f.bytecodes(own[0].Method)
	i := vmstructs.BytecodeAt(code, own[0].BCI)
	return i > 0 && !isInvoke(code[i-1].Op)
}

// mayBePart makes a mayBe for rules whose instructions are part of a check.
func mayBePart(of func(*place) evidence) func(*place, vmstructs.Scope) bool {
	return func(p *place, s vmstructs.Scope) bool {
		e := of(p)
		return p.mayBeCheck(s, e.reason) && (!p.makesObject(e) || p.mayMake(s))
	}
}

// mayBeCheck is mayCheck for the bytecode of a scope.
func (f *Finder) mayBeCheck(s vmstructs.Scope, reason vmstructs.TrapReason) bool {
	b := f.bytecodeOf(s)
	if b == nil {
		return s.BCI < 0 && s.Method.Synchronized && reason == vmstructs.NoTrap // the check of its monitor
	}
	if !mayCheck(s.Method, b, reason) {
		return false
	}
	if !isInvoke(b.Op) {
		return true
	}
	c := f.invoked(s.Method, b)
	return c.Method == nil || mayCheckInvoked(c, b.Op, reason)
}

// mayCheckInvoked reports whether C2 may make a check with that reason for an invoke of a method. For each invoke C2
// may check that the receiver is not null. If more than one method may be called, C2 may check the receiver's class.
// All other checks are made only for intrinsic methods. An intrinsic method without a reference among its arguments has
// nothing to check. The receiver of Unsafe's methods is a constant, and their object may be null.
func mayCheckInvoked(c vmstructs.Invocation, op uint8, reason vmstructs.TrapReason) bool {
	switch reason {
	case vmstructs.TrapNull:
		switch {
		case !c.Intrinsic:
			return op != vmstructs.OpInvokeStatic
		case strings.HasSuffix(c.Method.Class, "misc.Unsafe"):
			return strings.HasPrefix(c.Method.Name, "allocate") // the class to allocate
		}
		parameters, _, _ := strings.Cut(c.Method.Signature, ")")
		return op != vmstructs.OpInvokeStatic || strings.ContainsAny(parameters, "L[")
	case vmstructs.TrapClass:
		return c.Intrinsic || op == vmstructs.OpInvoke || op == vmstructs.OpInvokeInterface
	case vmstructs.TrapOther:
		return true
	}
	return c.Intrinsic
}

// mayCheck reports whether C2 may make a check with that reason for a bytecode of a method.
func mayCheck(in *vmstructs.Method, b *vmstructs.Bytecode, reason vmstructs.TrapReason) bool {
	op := b.Op
	invokes := isInvoke(op)
	loads := op >= vmstructs.OpIaload && op <= vmstructs.OpSaload
	stores := op >= vmstructs.OpIastore && op <= vmstructs.OpSastore
	switch reason {
	case vmstructs.TrapRange:
		return loads || stores || invokes
	case vmstructs.TrapClass:
		return casts(op) || invokes
	case vmstructs.TrapNull:
		return loads || stores || casts(op) || invokes || op == vmstructs.OpGetfield || op == vmstructs.OpPutfield ||
			op == vmstructs.OpArraylength || op == vmstructs.OpAthrow || op == vmstructs.OpMonitorenter || b.Branches()
	case vmstructs.TrapDivision:
		return op >= vmstructs.OpIdiv && op <= vmstructs.OpLrem || invokes
	case vmstructs.TrapBranch:
		return b.Branches()
	case vmstructs.NoTrap: // a slow path in the VM
		return b.Allocates() || invokes || casts(op) || op == vmstructs.OpAthrow || op == vmstructs.OpMonitorenter ||
			op == vmstructs.OpMonitorexit || b.Returns() && in.Synchronized
	case vmstructs.TrapOther:
		return mayTrap(in, b)
	}
	return false
}

// mayTrap reports whether a bytecode may lead to an uncommon trap: because a check fails, or because a class that the
// bytecode names was not loaded when the method was compiled.
func mayTrap(in *vmstructs.Method, b *vmstructs.Bytecode) bool {
	for reason := vmstructs.NoTrap; reason < vmstructs.TrapOther; reason++ {
		if mayCheck(in, b, reason) {
			return true
		}
	}
	return b.Op == vmstructs.OpGetstatic || b.Op == vmstructs.OpPutstatic
}
