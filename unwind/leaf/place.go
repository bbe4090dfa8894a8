package leaf

import "goprof/vmstructs"

// place is an instruction of an nmethod's code, with the facts about it that were found so far.
type place struct {
	*question
	n      int32     // the instruction's place in code.list, notInCode if not known
	routed inferred  // the result of route
	forked branching // the result of fork
}

type question struct {
	*Finder
	blob *vmstructs.Blob
	code *codeMap

	decided string       // the name of the rule that has decided
	nears   []foundNear  // results of nearest
	inPiece bool         // the question is about the code around a piece: see pieceEvidence
	legs    []leg        // memory for a route
	trails  [2][]trailed // memory for branchingAt
}

// ask begins a question: which methods run at the instruction at pc? answered ends the question.
func (f *Finder) ask(b *vmstructs.Blob, pc uint64) *place {
	f.vm.BeginQuestion()
	q, m := &f.asked, f.mapCode(b)
	clear(q.nears)
	*q = question{Finder: f, blob: b, code: m, nears: q.nears[:0], legs: q.legs[:0], trails: q.trails}
	return q.at(m.place(uint32(pc - b.Begin)))
}

func (q *question) answered() {
	q.settle(q.blob, q.code)
	q.vm.EndQuestion()
}

// at returns the place of another instruction of the same code.
func (q *question) at(n int32) *place { return &place{question: q, n: n} }

// route returns what follows from the evidence before and behind the instruction.
func (p *place) route() *inferred {
	if p.routed.scopes == nil {
		p.routed = p.infer(p.n, p.n, router{q: p.question, load: p.loadAt(p.n)})
	}
	return &p.routed
}

// fork returns the facts about the instruction as a comparison or a branch.
func (p *place) fork() *branching {
	if !p.forked.asked {
		p.forked = p.branchingAt(p.n)
		p.forked.asked = true
	}
	return &p.forked
}
