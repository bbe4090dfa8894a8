package leaf

import (
	"slices"

	"goprof/profile"
	"goprof/vmstructs"
)

// The judge is a test (testdata/oracle). It compares the results of the rules with the records of a JVM with
// -XX:+DebugNonSafepoints. For some instructions C2 has no record, and the next record describes later code. So the
// judge first asks whether C2 can have made this code for the record's bytecode.

// Judge returns the rule that decides for which bytecode the code at pc was made. may reports whether C2 can have made
// such code for the record's bytecode. rule is "" if no rule decides.
func (f *Finder) Judge(b *vmstructs.Blob, pc uint64, record vmstructs.Scope) (rule string, may bool) {
	p := f.ask(b, pc)
	defer p.answered()
	if b.Level != levelC2 {
		// C1 has its records where their code is. But the code that leaves the method has no state, and the next record
		// by address describes code that is not executed next.
		if p.n != notInCode && p.code.leavesAt(p.n) {
			return "leave", false
		}
		return "", true
	}
	if p.n = p.code.spentAt(p.n, b.Level); p.n == notInCode {
		return "", true
	}
	if p.reload().scopes != nil { // the record describes the instruction that uses the value
		p = p.at(p.code.reloadedFor(p.n))
	}
	if p.classAt(p.n).kind != noEvidence && !f.readsClass(&p.code.list[p.n]) {
		return "", true // see HandsClassTo
	}
	for i := range rules {
		r := &rules[i]
		if r.mayBe == nil || !r.tiers.has(b.Level) {
			continue
		}
		if v := r.decides(p); v.scopes != nil && v.sure == profile.Certain {
			return r.name, r.mayBe(p, record)
		}
	}
	return "", true
}

// HandsClassTo returns the comparison to which code of C2's at pc hands a class on, 0 if there is none. If both have
// the same record, the record is as right for pc as for the comparison.
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

// Counted returns, for code of C1's counters (counter.go), the record's methods from the counted method on. A counter
// and the copies before it have the record of the code that follows. no is true if the record does not describe the
// code at pc: either the record lacks the counted method, or the code is a copy before a counter, and may not be part
// of it.
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

// Computes reports whether C1's code at pc is arithmetic with registers and constants alone. Such code has no state, so
// C1 has no record of it.
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

// MayHaveCalled reports whether a bytecode may have called code of that name by a call without a record.
func (f *Finder) MayHaveCalled(s vmstructs.Scope, name string) bool {
	b := f.bytecodeOf(s)
	return b != nil && bytecodesOf(name)(s.Method, b, f.intrinsicAt(s.Method, b))
}
