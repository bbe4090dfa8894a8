package leaf

import (
	"slices"

	"goprof/profile"
	"goprof/vmstructs"
)

// C2 makes one piece of code for a call of some intrinsic methods. The piece's instructions show which method it stands
// for, whatever the records say. So the thread is at an invoke of that method on the route.

// piece is the code of one such call in an nmethod.
type piece struct {
	name       string // the name in arch.Code.Intrinsics
	begin, end uint32 // offsets in the code
	// scopes are the methods at the piece, once asked is true. The innermost one is at the invoke. scopes is nil if no
	// invoke was found.
	scopes []vmstructs.Scope
	sure   profile.Certainty
	asked  bool
}

// maxPieces bounds the pieces of an nmethod. pieceSize is the memory of a piece with its scopes.
const maxPieces, pieceSize = 256, 512

// findPieces finds the pieces. Each begins with an instruction, and pieces do not overlap.
func (m *codeMap) findPieces() {
	m.cpu.Intrinsics(m.code, func(name string, begin, end uint32) bool {
		if m.place(begin) != notInCode {
			m.pieces = append(m.pieces, piece{name: name, begin: begin, end: end})
		}
		return len(m.pieces) < maxPieces
	})
}

// pieceAt returns the piece that an instruction is part of, nil if there is none.
func (m *codeMap) pieceAt(n int32) *piece {
	if len(m.pieces) == 0 || n < 0 || int(n) >= len(m.list) {
		return nil
	}
	at := m.list[n].at
	i, ok := slices.BinarySearchFunc(m.pieces, at, func(p piece, at uint32) int { return int(p.begin) - int(at) })
	if !ok {
		i--
	}
	if i < 0 || at >= m.pieces[i].end {
		return nil
	}
	return &m.pieces[i]
}

// intrinsic returns the methods of the piece of which the instruction is part.
func (p *place) intrinsic() verdict {
	of := p.code.pieceAt(p.n)
	if of == nil {
		return verdict{}
	}
	s := p.methodsOfPiece(of)
	return verdict{s, of.sure}
}

// mayBeIntrinsic reports whether the piece may stand for a scope's bytecode.
func (p *place) mayBeIntrinsic(s vmstructs.Scope) bool {
	return p.MayHaveCalled(s, p.code.pieceAt(p.n).name)
}

// pieceEvidence returns the evidence of a piece, for the code before and behind it. While goprof searches the methods
// of a piece, pieces are no evidence.
func (q *question) pieceEvidence(of *piece) evidence {
	if q.inPiece || q.methodsOfPiece(of) == nil {
		return evidence{}
	}
	return evidence{kind: atPiece, piece: of}
}

// methodsOfPiece returns the methods of a piece, which it finds at the first call.
func (q *question) methodsOfPiece(of *piece) []vmstructs.Scope {
	if of.asked {
		return of.scopes
	}
	around := question{Finder: q.Finder, blob: q.blob, code: q.code, inPiece: true}
	begin, end := q.code.place(of.begin), q.code.place(of.end)
	scopes, sure := around.between(end, begin, bytecodesOf(of.name))
	of.asked, of.sure = true, sure
	if sure != profile.Guessed {
		of.scopes = scopes
	}
	return of.scopes
}

// behindPiece returns the methods of a piece right behind it, nil if they could not be read.
func (f *Finder) behindPiece(scopes []vmstructs.Scope) []vmstructs.Scope {
	if scopes == nil {
		return nil
	}
	code := f.bytecodes(scopes[0].Method)
	i := vmstructs.BytecodeAt(code, scopes[0].BCI)
	if i < 0 || i+1 >= len(code) {
		return scopes
	}
	done := slices.Clone(scopes)
	done[0].BCI, done[0].Line = code[i+1].BCI, scopes[0].Method.Line(code[i+1].BCI)
	return done
}
