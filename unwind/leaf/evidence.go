package leaf

import (
	"slices"

	"goprof/arch"
	"goprof/vmstructs"
)

// evidence is an instruction whose methods the compiler has recorded, or whose methods follow from the code around it.
type evidence struct {
	kind   evidenceKind
	far    int                  // instructions between the beginning of the search and the evidence
	scope  uint64               // the pc whose record has the methods; 0: only the owner of the code
	field  bool                 // for atNull: the access is to a field, not to the class
	piece  *piece               // set for atPiece
	reason vmstructs.TrapReason // set for atCheck
	outer  uint8                // how many of the record's methods, from the innermost one, do not run at the evidence
}

type evidenceKind uint8

const (
	noEvidence evidenceKind = iota
	atCall                  // a call with a record
	atPoll
	atTrap   // a branch to a call with a record: C2's rare code, or in C1's code a branch of the program
	atCheck  // a branch to the uncommon trap or to code of the VM: a check of the recorded bytecode
	atNull   // an access that faults on a null reference, and then continues at a call with a record
	atReturn // the return of the method that owns the code
	atPiece  // a piece of code that C2 makes for an intrinsic method
)

const (
	// maxWay bounds the instructions that a search reads ahead or back. maxDetour bounds the instructions between a
	// branch and the call to which the branch leads.
	maxWay    = 300
	maxDetour = 40
	maxLoops  = 8
)

func (q *question) evidenceAt(n int32) evidence {
	m := q.code
	if of := m.pieceAt(n); of != nil {
		return q.pieceEvidence(of)
	}
	i := &m.list[n]
	if !i.filled {
		e := q.findEvidence(n)
		i = &m.list[n] // the list may have grown
		i.filled, i.kind, i.field, i.reason, i.outer = true, e.kind, e.field, e.reason, e.outer
		if e.scope != 0 {
			i.record = uint32(e.scope - q.blob.Begin)
		}
	}
	e := evidence{kind: i.kind, field: i.field, reason: i.reason, outer: i.outer}
	if i.record != 0 {
		e.scope = q.blob.Begin + uint64(i.record)
	}
	return e
}

// findEvidence returns the evidence that an instruction is by itself.
func (q *question) findEvidence(n int32) evidence {
	m, b := q.code, q.blob
	i := m.list[n]
	pc := b.Begin + uint64(i.at)
	switch {
	case i.flow == flowUnknown:
		return evidence{}
	case i.flow == arch.FlowCall:
		if next := b.Begin + uint64(m.end(n)); b.HasPcDesc(next) {
			return evidence{kind: atCall, scope: next}
		}
		return evidence{}
	case i.begins && q.isPoll(b, pc): // a poll has a record, and a chunk begins at each record
		return evidence{kind: atPoll, scope: pc}
	case i.flow == arch.FlowReturn:
		return evidence{kind: atReturn}
	case i.flow == arch.FlowBranch && i.jumps:
		to := q.detour(m.target(n))
		if to.record == 0 {
			return evidence{}
		}
		kind, reason := q.branchKind(to)
		e := evidence{kind: kind, scope: to.record, reason: reason}
		if b.Level < levelC2 && (to.makes || q.recordedCallee(to.record) == callsJava) {
			return q.branchOfC1(n, e)
		}
		return e
	}
	if e := q.comparison(n); e.kind != noEvidence {
		return e
	}
	if to, ok := q.vm.OnNull(b, i.at); ok {
		if to := q.detour(m.place(to)); to.record != 0 {
			return evidence{kind: atNull, scope: to.record, field: i.disp > maxHeader}
		}
	}
	return evidence{}
}

// detour is a path that can only lead to a call with a record.
type detour struct {
	record uint64 // the record of the call; 0: there is no such path
	// request is the last constant that the path puts into the register of the call's first argument.
	request int32
	// works: the path does more than prepare a call (by copies of registers, constants and jumps). Then the path may
	// belong to several bytecodes, and the record may name another bytecode than the branch's.
	works bool
	// makes: the path leads to an allocation's slow path, and the call belongs to that.
	makes bool
}

// detour follows code from an instruction to a call with a record, and returns what it finds. C1 compiles rare code
// like any other: a throw, for example, first allocates the exception. So in C1's code the path may lead to the slow
// path of an allocation.
func (q *question) detour(n int32) (way detour) {
	m, b := q.code, q.blob
	allocates := false
	for range maxDetour {
		if n < 0 || int(n) >= len(m.list) {
			return detour{}
		}
		i := &m.list[n]
		if i.arg != 0 {
			way.request = i.arg
		}
		switch i.flow {
		case arch.FlowCall:
			if pc := b.Begin + uint64(m.end(n)); b.HasPcDesc(pc) {
				way.record = pc
				return way
			}
			way.works = true // the path's work is not part of the call behind it
			n = m.next(n)
		case arch.FlowJump:
			n = m.target(n)
		case arch.FlowBranch:
			if !allocates {
				return detour{}
			}
			allocates, way.makes = false, true
			n = m.target(n)
		case arch.FlowReturn, arch.FlowEnds, flowUnknown:
			return detour{}
		default:
			allocates = allocates || b.Level < levelC2 && q.filling(i) == readsRoom
			way.works = way.works || !preparesCall(i.kindOf)
			n = m.next(n)
		}
	}
	return detour{}
}

// preparesCall reports whether instructions of a kind only put arguments in their registers or slots.
func preparesCall(k arch.Kind) bool {
	return k == arch.KindCopy || k == arch.KindLong || k == arch.KindConst || k == arch.KindNop
}

// ahead finds the evidence that the code reaches next from an instruction on. Compilers put the likely code right
// behind a branch, so the search goes on there. But a backward branch ends a loop, which most likely runs again. So the
// search takes each backward branch once. If the loop itself has no evidence, the search leaves the loop.
func (q *question) ahead(n int32) evidence {
	m := q.code
	var back [maxLoops]int32 // the backward branches that were taken
	loops := 0
	for far := range maxWay {
		if n < 0 || int(n) >= len(m.list) {
			break
		}
		if e := q.evidenceAt(n); e.kind != noEvidence {
			e.far = far
			return e
		}
		i := m.list[n]
		switch {
		case i.flow == arch.FlowEnds, i.flow == flowUnknown:
			return evidence{}
		case i.flow == arch.FlowJump:
			n = m.target(n)
			continue
		case i.flow == arch.FlowBranch && i.jumps && i.to <= i.at:
			if to := m.target(n); to != notInCode && loops < maxLoops && !slices.Contains(back[:loops], n) {
				back[loops] = n
				loops++
				n = to
				continue
			}
		}
		n = m.next(n)
	}
	return evidence{}
}

// behind finds the last evidence in the code that leads to an instruction. If the instruction is reached only by jumps,
// behind continues at the first of these.
func (q *question) behind(n int32) evidence {
	var way leftBehind
	for far := 1; n >= 0 && far < maxWay; far++ {
		before, ok := way.step(q.code, n)
		if !ok && int(q.code.list[n].at) <= q.blob.FrameComplete {
			before, ok = notInCode, true // the frame is being built, so the entry is near
		}
		if !ok {
			return evidence{}
		}
		if before < 0 {
			return evidence{kind: atReturn, far: far}
		}
		n = before
		if e := q.evidenceAt(n); e.kind != noEvidence && e.kind != atReturn {
			e.far = far
			return e
		}
	}
	return evidence{}
}

// leftBehind is the path of behind. It ends before it would go in a circle.
type leftBehind struct{ jumps []int32 } // the jumps of the path

// step returns the instruction before n on the path, notInCode at the beginning of the code. ok is false if it is not
// known from where the code was reached.
func (s *leftBehind) step(m *codeMap, n int32) (before int32, ok bool) {
	before = m.before(n)
	if before < 0 {
		return notInCode, true
	}
	switch m.list[before].flow {
	case flowUnknown:
		return 0, false
	case arch.FlowJump, arch.FlowReturn, arch.FlowEnds:
		if m.target(before) == n { // C1 ends a cast by a jump to the next instruction
			break
		}
		jumps := m.jumpsTo(n)
		if len(jumps) == 0 || slices.Contains(s.jumps, jumps[0]) { // each circle has a jump
			return 0, false
		}
		before = jumps[0]
		s.jumps = append(s.jumps, before)
	}
	return before, true
}

// methodsOf returns the methods of evidence, nil if there are none or they cannot be read.
func (q *question) methodsOf(e evidence) []vmstructs.Scope {
	switch {
	case e.kind == noEvidence:
		return nil
	case e.piece != nil:
		return e.piece.scopes
	case e.scope == 0:
		return q.blob.OwnScope()
	}
	s, err := q.vm.Scopes(q.blob, e.scope, true)
	if err != nil {
		return nil
	}
	if e.field {
		return q.ofField(s)
	}
	return s[min(int(e.outer), len(s)-1):]
}

// maxHeader is the largest offset of an object's header, apart from its class.
const maxHeader = 8

// maxOfField bounds the methods that pass their receiver on to the method that accesses the field.
const maxOfField = 3

// ofField returns the methods at an access of a field whose null check has the record of an invoke. If the invoke's
// receiver is null, the access faults. The innermost method is the one that is inlined at the invoke, or a method that
// this one calls at once with the same receiver. So that method is no intrinsic here, even if it is one elsewhere.
func (q *question) ofField(record []vmstructs.Scope) []vmstructs.Scope {
	r := router{q: q}
	s, at := record, record
	for range maxOfField {
		code := q.bytecodes(s[0].Method)
		i := vmstructs.BytecodeAt(code, s[0].BCI)
		if i < 0 || !isInvoke(code[i].Op) {
			break
		}
		callee, _ := r.callee(s, vmstructs.PlaceOf(s), &code[i], false)
		if callee == nil {
			callee = q.invoked(s[0].Method, &code[i]).Method
			if callee == nil || !callee.Intrinsic || !r.mayInline(s, callee, false) {
				break
			}
		}
		s = enter(s, &code[i], callee)
		code = q.bytecodes(callee)
		if i := slices.IndexFunc(code, isOfField); i >= 0 {
			at = slices.Clone(s)
			at[0].BCI, at[0].Line = code[i].BCI, callee.Line(code[i].BCI)
		}
		if len(code) < 2 || code[0].Op != vmstructs.OpAload0 || code[1].Op == vmstructs.OpInvokeStatic {
			break
		}
		s[0].BCI = code[1].BCI
	}
	return at
}

func isOfField(b vmstructs.Bytecode) bool {
	return b.Op == vmstructs.OpGetfield || b.Op == vmstructs.OpPutfield
}
