package leaf

import "goprof/vmstructs"

// place is an instruction of an nmethod's code about which is asked, with the answers so far.
type place struct {
	*Finder
	blob *vmstructs.Blob
	code *codeMap
	n    int32 // the instruction: its place in code.list, notInCode if nobody knows

	nears   []foundNear  // what nearest has found
	inPiece bool         // it is asked what is around a piece: see pieceEvidence
	legs    []leg        // memory of a route
	trails  [2][]trailed // memory of branchingAt
}

// ask begins a question about the instruction at pc. answered ends it.
func (f *Finder) ask(b *vmstructs.Blob, pc uint64) *place {
	f.vm.BeginQuestion()
	p, m := &f.asked, f.mapCode(b)
	clear(p.nears)
	*p = place{Finder: f, blob: b, code: m, n: m.place(uint32(pc - b.Begin)), nears: p.nears[:0], legs: p.legs[:0],
		trails: p.trails}
	return p
}

// answered ends a question.
func (p *place) answered() {
	p.settle(p.blob, p.code)
	p.vm.EndQuestion()
}
