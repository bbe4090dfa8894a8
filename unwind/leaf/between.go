package leaf

import (
	"goprof/profile"
	"goprof/vmstructs"
)

// withinMethod says what the records before and behind tell, where that is certain.
func (p *place) withinMethod() verdict {
	if by := p.route(); by.sure == profile.Certain {
		return verdict{p.inLoopOf(by.scopes), by.sure}
	}
	return verdict{}
}

// inLoopOf returns the place of the poll that is next, if it has the same methods: C2 puts a loop's poll at the loop's
// end. The methods are known already. This tells one loop of a method from another.
func (p *place) inLoopOf(told []vmstructs.Scope) []vmstructs.Scope {
	if p.blob.Level != levelC2 {
		return told
	}
	if ahead := p.nearest(p.n, false); ahead.kind == atPoll {
		if to := p.told(ahead); to != nil && sameMethods(told, to) {
			return to
		}
	}
	return told
}

// onRoute says what is most likely between the records before and behind.
func (p *place) onRoute() verdict {
	by := p.route()
	return verdict{by.scopes, by.sure}
}

// inferred is what a route says of an instruction.
type inferred struct {
	scopes []vmstructs.Scope
	sure   profile.Certainty
	byLoad bool  // the instruction is a load of which it is known which bytecode it is
	legs   []leg // of the route, if one was looked for; valid until the next one is
}

// between infers the methods between two instructions: the thread is not behind last and not before next. If calls is
// not nil, it says which bytecodes may have called the code that the thread is in.
func (q *question) between(next, last int32, calls callsBytecode) ([]vmstructs.Scope, profile.Certainty) {
	by := q.infer(next, last, router{q: q, calls: calls})
	return by.scopes, by.sure
}

// infer is between by a router that has what is known of the instruction.
func (q *question) infer(next, last int32, r router) inferred {
	b := q.blob
	ahead, behind := q.nearest(next, false), q.nearest(last, true)
	to, from := q.told(ahead), q.told(behind)
	if to == nil || from == nil {
		r.load = nil
	}
	here := to != nil && ahead.far == 0 && next == last && r.calls == nil // calls knows more of the instruction
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
	// C1 does not move an access: what it was made for is done.
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
		!(b.Level < levelC2 && by.sure == profile.Certain): // no other method is between the evidence
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

// locate finds the way between what is known before and behind, of which one may be nil, and the place on it.
func (r *router) locate(from, to []vmstructs.Scope, done, left int) ([]vmstructs.Scope, profile.Certainty) {
	switch {
	case from == nil: // from its entry
		return known(r.between(r.q.blob.OwnScope(), to, maxWay, left), to), profile.Guessed
	case to == nil:
		leaves := []vmstructs.Scope{{Method: r.q.blob.Method, BCI: toReturn}}
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

// certainty returns how sure the methods are at an instruction that tells them itself. C2 moves instructions, and makes
// one instruction of several; C1 does neither.
func (q *question) certainty(e evidence, told []vmstructs.Scope) profile.Certainty {
	if q.blob.Level == levelC2 && e.kind != atCall && e.kind != atPoll && !(e.kind == atCheck && q.surelyOf(e, told)) {
		r := router{q: q}
		if !r.alone() {
			return profile.Likely
		}
	}
	return profile.Certain
}

// sure returns how certain the methods of the route are. from and to are the methods at its two ends. The methods are a
// guess if from and to differ, or if the route leads through another method.
//
// Otherwise they are certain in code of C1. C2 may have moved an instruction there from elsewhere, so in C2's code they
// are only likely. They are certain in C2's code in three cases: nothing is inlined into the nmethod (alone); the
// instruction is in a loop of one method (inOwnLoop); or it is at the beginning of a loop's round (beginsRound).
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

// isPoll reports whether pc is recorded as the place of a poll. A poll's record is the only one that describes the
// instruction at its pc. Every other record, also that of a call's return address, describes the instructions that end
// at its pc.
func (f *Finder) isPoll(b *vmstructs.Blob, pc uint64) bool {
	if !f.vm.IsSafepoint(b, pc) {
		return false
	}
	begin := pc - uint64(len(f.call))
	return begin < b.Begin || f.target.Read(begin, f.call) == nil && !f.cpu.EndsInCall(f.call)
}
