package leaf

import (
	"slices"

	"goprof/arch"
	"goprof/vmstructs"
)

// C2 moves instructions out of a loop, but none into it: it puts each instruction where it is executed least often
// (opto/gcm.cpp, hoist_to_cheaper_block). So all instructions of a loop belong to the loop's bytecodes, and to methods
// that are inlined there. If nothing is inlined into a loop, its instructions are all of one method.

// maxLoop bounds the instructions that are read to find the path around a loop.
const maxLoop = 400

// inOwnLoop reports whether an instruction is in a loop of the innermost method. from and to are the methods at the
// last evidence and at the next. In one case both have the same methods, at bytecodes of one loop into which nothing is
// inlined. In the other case the code jumps back without a call or a poll, as a small loop does. Then from and to must
// be at two bytecodes. Between two pieces of code for the same bytecode, C2 may also put the rest of a method that the
// loop called before. One error remains: a method with a loop of its own may be inlined between the two bytecodes
// without being on the route.
func (r *router) inOwnLoop(n int32, from, to []vmstructs.Scope) bool {
	if to[0].BCI < 0 || from[0].BCI < 0 {
		return false
	}
	code := r.q.bytecodes(to[0].Method)
	begin, end := loopAround(code, min(from[0].BCI, to[0].BCI), max(from[0].BCI, to[0].BCI))
	if begin >= 0 && from[0].BCI != to[0].BCI && r.turns(n) {
		return true
	}
	return begin >= 0 && r.inlinesNone(to, code, begin, end) && r.goesAround(n, to, begin, end)
}

// beginsRound reports whether an instruction is at the beginning of a loop's round: right behind the poll that ends the
// last round, and a jump leads back there. The instruction is executed as often as any other in the loop, so C2 has no
// reason to move other code there. Without such a jump, the code may be behind the loop.
func (r *router) beginsRound() bool {
	return r.behindPoll && r.leadsBack(r.at, func(int32) bool { return true })
}

// loopAround returns the indexes of the first and the last bytecode of the smallest loop that has both bytecodes. begin
// is -1 if there is no such loop.
func loopAround(code []vmstructs.Bytecode, first, last int32) (begin, end int32) {
	begin, end = -1, -1
	for i := range code {
		b := &code[i]
		if b.Target >= 0 && b.Target <= first && b.BCI >= last && (begin < 0 || b.BCI-b.Target < end-begin) {
			begin, end = b.Target, b.BCI
		}
	}
	for i := range code { // other jumps may lead to the loop's beginning, too
		if code[i].Target == begin && begin >= 0 {
			end = max(end, code[i].BCI)
		}
	}
	return begin, end
}

// inlinesNone reports whether nothing is inlined into a loop. If an invoke has a record of a call, and only one method
// can be called, the method is not inlined. If several methods can be called, C2 may have inlined the likeliest one and
// call the others. An invoke without a record may be inlined, even if the interpreter has not resolved it, and even if
// the method is an intrinsic: for some intrinsics C2 makes no code of its own (boxes, StringBuilder.append). A native
// method has no bytecodes to inline. But it may only call another method (handsOn).
func (r *router) inlinesNone(chain []vmstructs.Scope, code []vmstructs.Bytecode, begin, end int32) bool {
	place, asked := vmstructs.PlaceOf(chain), 0
	for i := range code {
		b := &code[i]
		if b.BCI < begin || b.BCI > end || !isInvoke(b.Op) {
			continue
		}
		if asked++; asked > maxCallees {
			return false
		}
		switch r.inlinedAt(place.Site(b.BCI)) {
		case 0:
		case isCalled:
			if b.Op == vmstructs.OpInvokeSpecial || b.Op == vmstructs.OpInvokeStatic {
				continue
			}
			return false
		default:
			return false
		}
		if c := r.q.invoked(chain[0].Method, b); !c.Intrinsic || c.Method == nil || !c.Method.Native || c.HandsOn {
			return false
		}
	}
	return true
}

// around is a search for a path from an instruction back to itself.
type around struct {
	n     int32
	found bool
	// met are the calls and polls at which the search has ended. For a loop that contains one of these, the search must
	// continue there.
	met []int32
}

// turns reports whether a path in the code leads from an instruction back to itself, without a call or a poll.
func (r *router) turns(n int32) bool {
	if r.around == nil || r.around.n != n {
		r.around = &around{n: n}
		r.around.found = r.leadsBack(n, func(at int32) bool {
			r.around.met = append(r.around.met, at)
			return false
		})
	}
	return r.around.found
}

// goesAround reports whether a path in the code leads from an instruction back to itself without leaving a loop of
// bytecodes. A path without calls and polls leaves no loop, so that search is made only once.
func (r *router) goesAround(n int32, chain []vmstructs.Scope, begin, end int32) bool {
	turns := r.turns(n)
	inLoop := func(at int32) bool { return r.isInLoop(at, chain, begin, end) }
	if !slices.ContainsFunc(r.around.met, inLoop) {
		return turns
	}
	return r.leadsBack(n, inLoop)
}

// leadsBack reports whether a path in the code leads from an instruction back to itself. mayMeet says which calls and
// polls may be on the path.
func (r *router) leadsBack(n int32, mayMeet func(int32) bool) bool {
	m, s := r.q.code, r.q.beginWays()
	if s == nil {
		return false
	}
	defer s.end()
	s.add(n, 0)
	for k := 0; k < len(s.queue) && k < maxLoop; k++ {
		at := s.queue[k].n
		if m.list[at].flow == flowUnknown || r.isStop(at) && !mayMeet(at) {
			continue
		}
		if i := &m.list[at]; i.jumps && i.to == m.list[n].at || goesOn(i.flow) && m.next(at) == n {
			return true
		}
		s.goOn(m, at, s.queue[k].far+1)
	}
	return false
}

// isStop reports whether an instruction is a call with a record, or a poll (see findEvidence). Other evidence might
// need code elsewhere, so isStop does not look for it.
func (r *router) isStop(n int32) bool {
	b := r.q.blob
	m := r.q.code
	if !m.mayStop(n) || m.pieceAt(n) != nil {
		return false
	}
	i := &m.list[n]
	switch {
	case i.filled:
		return i.kind == atCall || i.kind == atPoll
	case i.flow == flowUnknown:
		return false
	case i.flow == arch.FlowCall:
		return b.HasPcDesc(b.Begin + uint64(m.end(n)))
	}
	return i.begins && r.q.isPoll(b, b.Begin+uint64(i.at))
}

// mayStop reports whether an instruction may be a call with a record, or a poll, by its place in its chunk. Such a call
// is the last instruction of a chunk, and a poll is the first.
func (m *codeMap) mayStop(n int32) bool {
	i := &m.list[n]
	return i.begins || i.ends && i.flow == arch.FlowCall
}

// isInLoop reports whether a call or a poll belongs to a loop's bytecodes. A call of the uncommon trap does not.
func (r *router) isInLoop(n int32, chain []vmstructs.Scope, begin, end int32) bool {
	e := r.q.evidenceAt(n)
	if e.kind == atCall && r.q.recordedCallee(e.scope) == callsTrap {
		return false
	}
	s := r.q.methodsOf(e)
	return s != nil && sameMethods(s, chain) && s[0].BCI >= begin && s[0].BCI <= end
}
