package leaf

import (
	"goprof/profile"
	"goprof/vmstructs"
)

// withinMethod returns the methods between the last evidence and the next, if they are certain.
func (p *place) withinMethod() verdict {
	if by := p.route(); by.sure == profile.Certain {
		return verdict{p.inLoopOf(by.scopes), by.sure}
	}
	return verdict{}
}

// inLoopOf returns the scopes of the next poll if these have the same methods as scopes, otherwise scopes. C2 puts a
// loop's poll at the loop's end, so the poll's bytecode shows which of a method's loops runs.
func (p *place) inLoopOf(scopes []vmstructs.Scope) []vmstructs.Scope {
	if p.blob.Level != levelC2 {
		return scopes
	}
	if ahead := p.nearest(p.n, false); ahead.kind == atPoll {
		if to := p.methodsOf(ahead); to != nil && sameMethods(scopes, to) {
			return to
		}
	}
	return scopes
}

// onRoute returns the likeliest methods between the last evidence and the next.
func (p *place) onRoute() verdict {
	by := p.route()
	return verdict{by.scopes, by.sure}
}

// inferred is the result of a route for an instruction.
type inferred struct {
	scopes []vmstructs.Scope
	sure   profile.Certainty
	byLoad bool  // the instruction is a load, and its method is certain
	legs   []leg // the route's legs; valid until the next search of a route
}

// between returns the likeliest methods between two instructions: the thread is before next, and not behind last. If
// calls is not nil, it selects the bytecodes that may have called the code in which the thread is.
func (q *question) between(next, last int32, calls callsBytecode) ([]vmstructs.Scope, profile.Certainty) {
	by := q.infer(next, last, router{q: q, calls: calls})
	return by.scopes, by.sure
}

// infer returns the route between two instructions, found by a router that knows which bytecodes the instruction can
// be.
func (q *question) infer(next, last int32, r router) inferred {
	b := q.blob
	ahead, behind := q.nearest(next, false), q.nearest(last, true)
	to, from := q.methodsOf(ahead), q.methodsOf(behind)
	if to == nil || from == nil {
		r.load = nil
	}
	here := to != nil && ahead.far == 0 && next == last && r.calls == nil // calls shows more than evidence
	if here && r.load == nil {
		return inferred{scopes: to, sure: q.certainty(ahead, to)}
	}
	if to == nil && from == nil {
		return inferred{scopes: b.OwnScope(), sure: profile.Guessed}
	}
	itself := to
	if ahead.kind == atReturn {
		to = []vmstructs.Scope{{Method: b.Method, BCI: toReturn, Line: to[0].Line}}
	}
	// C1 does not move an access, so behind it the bytecode of the access is done.
	if behind.kind == atPiece || behind.kind == atNull && behind.field && b.Level < levelC2 {
		from = q.behindPiece(from)
	}
	r.at, r.behindPoll = next, behind.kind == atPoll
	by := inferred{}
	by.scopes, by.sure = r.locate(from, to, behind.far, ahead.far)
	by.legs = r.legs
	switch {
	case r.isLoad():
		by.sure, by.byLoad = profile.Certain, true
		return by
	case here:
		by.scopes, by.sure = itself, q.certainty(ahead, itself)
		return by
	case r.load != nil && len(r.found) == 1 && len(r.legs) <= maxLikelyLegs &&
		!(b.Level < levelC2 && by.sure == profile.Certain): // no other method is possible between the evidence
		by.scopes, by.sure = r.found[0].scopes, profile.Likely
		return by
	case r.calls != nil:
		by.sure = r.sureOfCall()
	}
	if by.scopes[0].BCI == toReturn {
		by.scopes = b.OwnScope()
	}
	return by
}

// locate finds the route from the evidence behind (from) to the evidence ahead (to), and the scopes on it. One of the
// two may be nil.
func (r *router) locate(from, to []vmstructs.Scope, done, left int) ([]vmstructs.Scope, profile.Certainty) {
	switch {
	case from == nil: // begin at the method's entry
		return known(r.between(r.q.blob.OwnScope(), to, maxWay, left), to), profile.Guessed
	case to == nil:
		leaves := []vmstructs.Scope{{Method: r.q.blob.Method, BCI: toReturn}}
		return known(r.between(from, leaves, done, maxWay), from), profile.Guessed
	}
	scopes := r.between(from, to, done, left) // before sure, which reads the legs
	return scopes, r.sure(from, to)
}

// known returns scopes. If scopes is only the owner at an unknown bytecode, known returns the owner at the bytecode
// that place has.
func known(scopes, place []vmstructs.Scope) []vmstructs.Scope {
	if len(scopes) == 1 && scopes[0].BCI < 0 {
		return place[len(place)-1:]
	}
	return scopes
}

// certainty returns how sure the methods are at an instruction that is evidence itself. C2 moves and merges
// instructions, and C1 does neither.
func (q *question) certainty(e evidence, scopes []vmstructs.Scope) profile.Certainty {
	if q.blob.Level == levelC2 && e.kind != atCall && e.kind != atPoll && !(e.kind == atCheck && q.surelyOf(e, scopes)) {
		r := router{q: q}
		if !r.alone() {
			return profile.Likely
		}
	}
	return profile.Certain
}

// sure returns how certain the methods of the route are. from and to are the methods at its ends. If from and to
// differ, or if another method is on the route, the methods are a guess.
//
// Otherwise the methods are certain in code of C1. In code of C2 they are only likely, because C2 may have moved an
// instruction there from elsewhere. They are certain in code of C2 in three cases: nothing is inlined into the nmethod
// (alone); the instruction is in a loop of one method (inOwnLoop); or it is at the beginning of a loop's round
// (beginsRound).
func (r *router) sure(from, to []vmstructs.Scope) profile.Certainty {
	if !sameMethods(from, to) {
		return profile.Guessed
	}
	for i := range r.legs {
		if s := r.legs[i].scopes; len(s) != len(to) || s[0].Method != to[0].Method {
			return profile.Guessed
		}
	}
	if r.q.blob.Level == levelC2 && !r.beginsRound() && !r.alone() && !r.inOwnLoop(r.at, from, to) {
		return profile.Likely
	}
	return profile.Certain
}

// sameMethods reports whether from and to have the same methods, with the same calls between them.
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

// Levels of code (compiler/compilerDefinitions.hpp): CompLevel_full_profile and CompLevel_full_optimization.
const levelProfiled, levelC2 = 3, 4

// isPoll reports whether pc has the record of a poll. Only a poll's record describes the instruction at its pc. All
// other records, also those of return addresses, describe the instructions that end at their pc.
func (f *Finder) isPoll(b *vmstructs.Blob, pc uint64) bool {
	if !f.vm.IsSafepoint(b, pc) {
		return false
	}
	begin := pc - uint64(len(f.call))
	return begin < b.Begin || f.target.Read(begin, f.call) == nil && !f.cpu.EndsInCall(f.call)
}
