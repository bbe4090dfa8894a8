package unwind

import (
	"goprof/profile"
	"goprof/vmstructs"
)

// Compilers record which methods are inlined where, and at which line, at calls and at safepoints only. A thread that
// was stopped is hardly ever at one of them. The code before and behind the pc says something of its methods. From that
// it follows which methods run at the pc, and how sure that is (docs/decisions/0007-the-leaf.md).

// scopes returns the methods at pc. exact: the thread is at that instruction, and has not called there.
func (w *Walker) scopes(b *vmstructs.Blob, pc uint64, exact bool) ([]vmstructs.Scope, profile.Certainty, error) {
	switch {
	case b.Kind != vmstructs.Nmethod || !exact && (isWhole(b, pc) || w.vm.FullRecords(b)):
		s, err := w.vm.Scopes(b, pc, true)
		return s, profile.Certain, err
	case !exact:
		return w.Called(b, pc, w.calledName())
	case w.vm.FullRecords(b):
		return w.Recorded(b, pc)
	}
	s, sure := w.Inlined(b, pc)
	return s, sure, nil
}

// Recorded returns the methods at a pc where a thread was stopped from code whose records tell of every instruction.
func (w *Walker) Recorded(b *vmstructs.Blob, pc uint64) ([]vmstructs.Scope, profile.Certainty, error) {
	pc = w.spentAt(b, pc)
	s, err := w.vm.Scopes(b, pc, w.isPoll(b, pc))
	return s, profile.Certain, err
}

// spentAt is codeMap.spentAt of a pc.
func (w *Walker) spentAt(b *vmstructs.Blob, pc uint64) uint64 {
	m := w.mapCode(b)
	defer w.settle(b, m)
	if n := m.spentAt(m.place(uint32(pc-b.Begin)), b.Level); n != notInCode {
		return b.Begin + uint64(m.list[n].at)
	}
	return pc
}

// Inlined infers the methods at a pc where a thread was stopped from code whose records are safepoints alone.
// Where nothing tells, they are the owner alone: that method runs there, too.
func (w *Walker) Inlined(b *vmstructs.Blob, pc uint64) ([]vmstructs.Scope, profile.Certainty) {
	return w.infer(b, pc, nil)
}

// infer is Inlined with calls. If calls is not nil, it tells which bytecodes may have called the code that the thread
// is in.
func (w *Walker) infer(b *vmstructs.Blob, pc uint64, calls callsBytecode) ([]vmstructs.Scope, profile.Certainty) {
	if pc < b.Begin+uint64(max(b.FrameComplete, 0)) {
		return b.OwnScope(), profile.Certain // its frame is being built
	}
	w.vm.BeginQuestion()
	defer w.vm.EndQuestion()
	if !b.TellsScopes() {
		return b.OwnScope(), profile.Guessed
	}
	m := w.mapCode(b)
	defer w.settle(b, m)
	n := m.place(uint32(pc - b.Begin))
	w.legs = w.legs[:0] // of no route yet: see atCounter
	clear(w.nears)
	w.nears = w.nears[:0]
	if calls == nil {
		n = m.spentAt(n, b.Level)
		if b.Level < levelC2 && w.markAt(b, m, n) == 0 {
			n = w.notedWith(m, n)
		}
		if s, sure := w.inPieceAt(b, m, n); s != nil {
			return s, sure
		}
		if s := w.atReload(b, m, n); s != nil {
			return s, profile.Certain
		}
		at := w.branchingAt(b, m, n)
		w.legs = w.legs[:0] // those of what was asked meanwhile are of other places
		if at.parts {
			return at.scopes, profile.Certain
		}
		s, sure, _ := w.atLoad(b, m, n)
		if s, sure := w.atCounter(b, m, n, s); s != nil { // its loads are those of no object
			return s, sure
		}
		switch {
		case sure == profile.Certain:
		case at.scopes != nil:
			if !at.meets || !sameMethods(at.scopes, s) {
				return at.scopes, profile.Likely
			}
			return at.scopes, profile.Certain
		case w.confirmed(b, m, n, s):
			sure = profile.Certain
		}
		if sure == profile.Certain {
			return s, sure
		}
		if loop := w.loopAt(b, m, n, s); loop != nil && !sameMethods(loop, s) {
			return loop, profile.Guessed
		}
		return s, sure
	}
	return w.inferAt(b, m, n, n, calls)
}

// inferAt is infer between two instructions: the thread is not behind the one and not before the other.
func (w *Walker) inferAt(b *vmstructs.Blob, m *codeMap, next, last int32, calls callsBytecode) ([]vmstructs.Scope,
	profile.Certainty) {
	s, sure, _ := w.inferOf(b, m, next, last, router{w: w, level: b.Level, blob: b, code: m, calls: calls})
	return s, sure
}

// inferOf is inferAt by a router that has what is known of the instruction. byLoad: the instruction is a load of which
// it is known which bytecode it is.
func (w *Walker) inferOf(b *vmstructs.Blob, m *codeMap, next, last int32, r router) (s []vmstructs.Scope,
	sure profile.Certainty, byLoad bool) {
	ahead, behind := w.nearest(b, m, next, false), w.nearest(b, m, last, true)
	to, from := w.told(b, ahead), w.told(b, behind)
	if to == nil || from == nil {
		r.load = nil
	}
	here := to != nil && ahead.far == 0 && next == last && r.calls == nil // calls knows more of the instruction
	if here && r.load == nil {
		return to, w.certainty(b, m, ahead, to), false
	}
	if to == nil && from == nil {
		return b.OwnScope(), profile.Guessed, false
	}
	itself := to
	if ahead.kind == atReturn {
		to = []vmstructs.Scope{{Method: b.Method, BCI: toReturn, Line: to[0].Line}}
	}
	// C1 does not move an access: what it was made for is done.
	if behind.kind == atPiece || behind.kind == atNull && behind.field && b.Level < levelC2 {
		from = w.behindPiece(from)
	}
	r.at, r.behindPoll = next, behind.kind == atPoll
	place, sure := r.place(from, to, behind.far, ahead.far)
	switch {
	case r.isLoad():
		return place, profile.Certain, true
	case here:
		return itself, w.certainty(b, m, ahead, itself), false
	case r.load != nil && len(r.found) == 1 && len(r.legs) <= maxLikelyLegs &&
		!(b.Level < levelC2 && sure == profile.Certain): // no other method is between the evidence
		return r.found[0].scopes, profile.Likely, false
	case r.calls != nil:
		sure = r.sureOfCall()
	}
	if place[0].BCI == toReturn {
		place = b.OwnScope()
	}
	return place, sure, false
}

// place finds the way between what is known before and behind, of which one may be nil, and the place on it.
func (r *router) place(from, to []vmstructs.Scope, done, left int) ([]vmstructs.Scope, profile.Certainty) {
	switch {
	case from == nil: // from its entry
		return known(r.between(r.blob.OwnScope(), to, maxWay, left), to), profile.Guessed
	case to == nil:
		leaves := []vmstructs.Scope{{Method: r.blob.Method, BCI: toReturn}}
		return known(r.between(from, leaves, done, maxWay), from), profile.Guessed
	}
	told := r.between(from, to, done, left)
	return told, r.sure(from, to)
}

// known is what was told, but with the line of a place that is known if it is the owner alone, somewhere.
func known(told, place []vmstructs.Scope) []vmstructs.Scope {
	if len(told) == 1 && told[0].BCI < 0 {
		return place[len(place)-1:]
	}
	return told
}

// certainty is how sure the methods are at an instruction that tells them itself. C2 moves instructions, and makes one
// instruction of several; C1 does neither.
func (w *Walker) certainty(b *vmstructs.Blob, m *codeMap, e evidence, told []vmstructs.Scope) profile.Certainty {
	if b.Level == levelC2 && e.kind != atCall && e.kind != atPoll && !(e.kind == atCheck && w.surelyOf(e, told)) {
		r := router{w: w, level: b.Level, blob: b, code: m}
		if !r.alone() {
			return profile.Likely
		}
	}
	return profile.Certain
}

// sure is how sure the methods are between two such instructions. They are not sure at all, unless both instructions
// tell the same and the way leads through no other method. C2 also moves instructions there from elsewhere: C2's code
// is certain only where there is no other method, in a loop of such code, and at the beginning of a loop's round.
func (r *router) sure(from, to []vmstructs.Scope) profile.Certainty {
	if !sameMethods(from, to) {
		return profile.Guessed
	}
	for i := range r.legs {
		if s := r.legs[i].scopes; len(s) != len(to) || s[0].Method != to[0].Method {
			return profile.Guessed
		}
	}
	if r.level == levelC2 && !r.beginsRound() && !r.alone() && !r.inOwnLoop(r.at, from, to) {
		return profile.Likely
	}
	return profile.Certain
}

// sameMethods reports whether two places have the same methods, called at the same places.
func sameMethods(from, to []vmstructs.Scope) bool {
	if len(from) != len(to) {
		return false
	}
	for i := range from {
		if from[i].Method != to[i].Method || i > 0 && from[i].BCI != to[i].BCI {
			return false
		}
	}
	return true
}

// compiler/compilerDefinitions.hpp: CompLevel_full_profile and CompLevel_full_optimization.
const levelProfiled, levelC2 = 3, 4

// isPoll reports whether pc is recorded as the place of a poll. A poll's record is the only one that tells of the
// instruction at its pc. Every other record, a call's return address too, stands at the end of the instructions that it
// tells of.
func (w *Walker) isPoll(b *vmstructs.Blob, pc uint64) bool {
	if !w.vm.IsSafepoint(b, pc) {
		return false
	}
	call := w.code[:w.cpu.MaxCall]
	begin := pc - uint64(len(call))
	return begin < b.Begin || w.t.Read(begin, call) == nil && !w.cpu.EndsInCall(call)
}
