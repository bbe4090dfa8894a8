package leaf

import (
	"slices"
	"strings"

	"goprof/arch"
	"goprof/profile"
	"goprof/vmstructs"
)

// The judge of the rules (testdata/oracle) holds what they tell against the records of a JVM that was started with
// -XX:+DebugNonSafepoints. Some records are those of code that stands further behind: C2 has none of the instruction
// itself. So the judge asks whether code of such a kind can have been made for the bytecode that a record has. The
// answer must not depend on which bytecode the rule says it is: a judge that asks for the rule's bytecode would leave
// out just those samples where the rule is wrong.

// MayBeOfPiece reports whether the piece of code at pc, if there is one, can have been made for what a record tells.
func (f *Finder) MayBeOfPiece(b *vmstructs.Blob, pc uint64, truth vmstructs.Scope) (piece, may bool) {
	p := f.ask(b, pc)
	defer p.answered()
	if b.Level != levelC2 {
		// C1's records are where their code is. But what leaves the method has no state, and the next record by address is
		// that of code which does not follow.
		return p.n != notInCode && p.leavesAt(p.n), false
	}
	n := p.code.spentAt(p.n, b.Level)
	if p.atReload(n) != nil { // its record is that of what takes the value
		n = p.code.reloadedFor(n)
	}
	if of := p.code.pieceAt(n); of != nil {
		return true, f.MayHaveCalled(truth, of.name)
	}
	if p.lockAt(n) != nil {
		return true, f.locks(truth)
	}
	if s, sure, name := p.byRoute(n); s != nil && sure == profile.Certain {
		return true, f.MayHaveCalled(truth, name)
	}
	if n != notInCode && p.classAt(n).kind != noEvidence && !f.readsClass(&p.code.list[n]) {
		return false, false // see HandsClassTo
	}
	switch e := p.partAt(n); e.kind {
	case atReturn:
		return true, f.leaves(truth)
	case atPoll:
		return true, f.mayPoll(truth)
	case atCheck:
		return true, f.mayBeCheck(truth, e.reason) && (!p.makesObject(e) || f.mayMake(truth))
	}
	if p.branchAt(n) != nil {
		return true, f.mayBranch(truth, p.asksForOrder(n))
	}
	if p.atLoad(n).byLoad || p.byTaker(n) != nil {
		return true, f.mayLoad(truth, p.loadAt(n))
	}
	return false, false
}

// HandsClassTo returns the comparison to which code of C2's at pc hands a class on, 0 if it does not. Where both have
// one record, that is worth at pc what it is worth at the comparison.
func (f *Finder) HandsClassTo(b *vmstructs.Blob, pc uint64) uint64 {
	p := f.ask(b, pc)
	defer p.answered()
	if b.Level != levelC2 || p.n == notInCode || p.classAt(p.n).kind == noEvidence {
		return 0
	}
	to := p.handedTo(p.n)
	if to == notInCode {
		return 0
	}
	return b.Begin + uint64(p.code.list[to].at)
}

// Counted returns the methods of a record from the one on for which code of C1's counts at pc. C1 records a counter
// with what follows, and so the copies before it. no: the record is no truth. The code counts for a method that the
// record does not have, or it is a copy before a counter, which may be part of it or not.
func (f *Finder) Counted(b *vmstructs.Blob, pc uint64, record []vmstructs.Scope) (s []vmstructs.Scope, no bool) {
	if b.Level != levelProfiled {
		return nil, false
	}
	p := f.ask(b, pc)
	defer p.answered()
	n := p.n
	if n == notInCode {
		return nil, false
	}
	if data := p.countedIn(n); data != 0 {
		i := slices.IndexFunc(record, func(s vmstructs.Scope) bool { return f.vm.DataOf(s.Method) == data })
		if i < 0 {
			return nil, true
		}
		return record[i:], false
	}
	m, end := p.code, p.notedWith(n)
	for k := 0; k < maxUnnoted && n != end && m.list[end].at > m.list[n].at; k++ {
		if n = m.next(n); n == notInCode || p.countedIn(n) != 0 {
			return nil, n != notInCode
		}
	}
	return nil, false
}

// InBarrier reports whether code at pc is told as that of a store's barrier, and certainly so. With InBarrier the judge
// leaves out records that many barriers share. Where the rule does not say that it is sure, the record counts.
func (f *Finder) InBarrier(b *vmstructs.Blob, pc uint64) bool {
	p := f.ask(b, pc)
	defer p.answered()
	s, sure, name := p.byRoute(p.code.spentAt(p.n, b.Level))
	return s != nil && sure == profile.Certain && name == storeBarrier
}

// Computes reports whether C1's code at pc is arithmetic with registers and constants alone. Such a bytecode has no
// state, so C1 has no record of it.
func (f *Finder) Computes(b *vmstructs.Blob, pc uint64) bool {
	if b.Level == levelC2 {
		return false
	}
	p := f.ask(b, pc)
	defer p.answered()
	if p.n == notInCode {
		return false
	}
	o, ok := p.code.operands(p.n)
	return ok && o.Computes && !p.code.list[p.n].widens
}

// leaves reports whether a method is left at a place.
func (f *Finder) leaves(s vmstructs.Scope) bool {
	b := f.bytecodeOf(s)
	return s.BCI < 0 || b != nil && b.Returns()
}

// mayPoll reports whether C2 may have made a poll for a place: one that leads back, or may do so.
func (f *Finder) mayPoll(s vmstructs.Scope) bool {
	b := f.bytecodeOf(s)
	return b != nil && b.Target <= b.BCI && (b.Target >= 0 || b.Branches())
}

// makesObject reports whether a check is that of an allocation: the VM makes the object where the check fails
// (opto/runtime.cpp: new_instance, new_array and their like).
func (p *place) makesObject(e evidence) bool {
	to, ok := p.recordedTarget(e.scope)
	if !ok {
		return false
	}
	kind, name, err := p.vm.KindAt(to)
	return err == nil && kind == vmstructs.RuntimeStub &&
		(strings.Contains(name, "new_") || strings.Contains(name, "newarray"))
}

// makers are the intrinsic methods of which C2 makes allocations (opto/library_call.cpp).
var makers = []string{"clone", "copyOf", "newArray", "newInstance", "allocate", "toBytes", "toString", "multiplyToLen",
	"NullRest"}

// mayMake reports whether C2 may have made an allocation for a place.
func (f *Finder) mayMake(s vmstructs.Scope) bool {
	b := f.bytecodeOf(s)
	if b == nil || b.Allocates() {
		return b != nil
	}
	if !isInvoke(b.Op) {
		return false
	}
	c := f.invoked(s.Method, b)
	return c.Method == nil || c.Intrinsic && slices.ContainsFunc(makers, func(part string) bool {
		return strings.Contains(c.Method.Name, part)
	})
}

// mayBeCheck is mayCheck for a place.
func (f *Finder) mayBeCheck(s vmstructs.Scope, reason vmstructs.TrapReason) bool {
	b := f.bytecodeOf(s)
	if b == nil {
		return s.BCI < 0 && s.Method.Synchronized && reason == vmstructs.NoTrap // its monitor
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

// mayCheckInvoked reports whether C2 makes a check of an invoke of a method: that the receiver is not null, and of
// which class it is where more than one method may be called. All else that is checked is checked for an intrinsic
// method. Of these, one without a reference has nothing to check. Those of Unsafe are called on a constant, and
// null stands for no object there.
func mayCheckInvoked(c vmstructs.Invocation, op uint8, reason vmstructs.TrapReason) bool {
	switch reason {
	case vmstructs.TrapNull:
		switch {
		case !c.Intrinsic:
			return op != vmstructs.OpInvokeStatic
		case strings.HasSuffix(c.Method.Class, "misc.Unsafe"):
			return strings.HasPrefix(c.Method.Name, "allocate") // of which class
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

// mayCheck reports whether C2 makes a check that fails for a reason of a bytecode of a method.
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

// mayTrap reports whether C2 lets the uncommon trap do a bytecode for any reason: for one of a check, or because a
// class that the bytecode names was not loaded when the method was compiled.
func mayTrap(in *vmstructs.Method, b *vmstructs.Bytecode) bool {
	for reason := vmstructs.NoTrap; reason < vmstructs.TrapOther; reason++ {
		if mayCheck(in, b, reason) {
			return true
		}
	}
	return b.Op == vmstructs.OpGetstatic || b.Op == vmstructs.OpPutstatic
}

// asksForOrder reports whether a comparison or the branch behind it asks which of two numbers is less, with their
// signs.
func (p *place) asksForOrder(n int32) bool {
	m := p.code
	compare, branch := m.comparisonAndBranch(n)
	if branch == notInCode {
		return false
	}
	is, ok := m.cpu.Condition(m.code, m.list[compare].at, m.list[branch].at)
	return ok && is.Is >= arch.Less
}

// mayBranch reports whether C2 can have made a comparison and a branch for a place. All bytecodes count of which C2
// makes any, whether the rule knows them or not. Checks ask whether two values are the same, or of numbers without
// signs: order is asked for by branches, by comparisons, by switches, and for intrinsic methods.
func (f *Finder) mayBranch(s vmstructs.Scope, order bool) bool {
	b := f.bytecodeOf(s)
	if b == nil || b.Branches() || b.Op >= vmstructs.OpLcmp && b.Op <= vmstructs.OpDcmpg {
		return true
	}
	return f.intrinsicAt(s.Method, b) != nil || !order && mayTrap(s.Method, b)
}

// loadsForVM reports whether C2 makes loads of a bytecode that read what is the VM's: a static field, a class's list of
// those above it, a table of methods.
func loadsForVM(b *vmstructs.Bytecode) bool {
	switch b.Op {
	case vmstructs.OpGetstatic, vmstructs.OpCheckcast, vmstructs.OpInstanceof, vmstructs.OpInvoke,
		vmstructs.OpInvokeInterface:
		return true
	}
	return false
}

// mayLoad reports whether C2 may have made a load for a place. It may make one for an intrinsic method, too, for an
// element whose index is a constant, or for the VM: the rule does not think of these, so the judge of the rule must.
func (f *Finder) mayLoad(s vmstructs.Scope, load callsBytecode) bool {
	b := f.bytecodeOf(s)
	return b != nil && (load(s.Method, b, nil) || loadsElement(nil, b, nil) || loadsForVM(b) ||
		f.intrinsicAt(s.Method, b) != nil)
}

// MayHaveCalled reports whether code of that name may have been called at a bytecode without a record.
func (f *Finder) MayHaveCalled(s vmstructs.Scope, name string) bool {
	b := f.bytecodeOf(s)
	return b != nil && bytecodesOf(name)(s.Method, b, f.intrinsicAt(s.Method, b))
}
