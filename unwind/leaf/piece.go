package leaf

import (
	"slices"

	"goprof/arch"
	"goprof/profile"
	"goprof/vmstructs"
)

// C2 makes one piece of code for some intrinsic methods. The piece is known by its instructions, so it is known which
// method it stands for, whatever the records say. An invoke of that method on the route is where the program is.

// piece is such a piece of an nmethod's code.
type piece struct {
	name       string // as arch.Code has it
	begin, end uint32 // offsets in the code
	// scopes are the methods there, if asked: the innermost at the invoke. nil: no such invoke was found.
	scopes []vmstructs.Scope
	sure   profile.Certainty
	asked  bool
}

// maxPieces bounds those of an nmethod, pieceSize the memory of one with its scopes.
const maxPieces, pieceSize = 256, 512

// findPieces finds the pieces. They begin where an instruction does, and do not overlap.
func (m *codeMap) findPieces() {
	m.cpu.Intrinsics(m.code, func(name string, begin, end uint32) bool {
		if m.place(begin) != notInCode {
			m.pieces = append(m.pieces, piece{name: name, begin: begin, end: end})
		}
		return len(m.pieces) < maxPieces
	})
}

// pieceAt is the piece that an instruction is part of, nil if it is of none.
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

// pieceEvidence is what a piece tells to the code before and behind it. While it is asked what is around a piece,
// pieces tell nothing.
func (p *place) pieceEvidence(of *piece) evidence {
	if p.inPiece || p.askPiece(of) == nil {
		return evidence{}
	}
	return evidence{kind: atPiece, piece: of}
}

// askPiece finds out once which methods a piece belongs to.
func (p *place) askPiece(of *piece) []vmstructs.Scope {
	m := p.code
	if of.asked {
		return of.scopes
	}
	around := place{Finder: p.Finder, blob: p.blob, code: m, n: p.n, inPiece: true}
	begin, end := m.place(of.begin), m.place(of.end)
	scopes, sure := around.between(end, begin, bytecodesOf(of.name))
	of.asked, of.sure = true, sure
	if sure != profile.Guessed {
		of.scopes = scopes
	}
	return of.scopes
}

// behindPiece returns the methods of a piece as they are when the piece is done.
func (f *Finder) behindPiece(scopes []vmstructs.Scope) []vmstructs.Scope {
	code := f.bytecodes(scopes[0].Method)
	i := vmstructs.BytecodeAt(code, scopes[0].BCI)
	if i < 0 || i+1 >= len(code) {
		return scopes
	}
	done := slices.Clone(scopes)
	done[0].BCI, done[0].Line = code[i+1].BCI, scopes[0].Method.Line(code[i+1].BCI)
	return done
}

// inPieceAt returns the methods at an instruction of a piece, nil if it is of none that is known.
func (p *place) inPieceAt(n int32) ([]vmstructs.Scope, profile.Certainty) {
	if of := p.code.pieceAt(n); of != nil {
		return p.askPiece(of), of.sure
	}
	if s := p.lockAt(n); s != nil {
		return s, profile.Certain
	}
	if s, sure, _ := p.byRoute(n); s != nil {
		return s, sure
	}
	switch e := p.partAt(n); e.kind {
	case atReturn:
		if p.blob.Level != levelC2 { // the line is that of what was known last
			if from := p.told(p.nearest(n, true)); from != nil {
				return from[len(from)-1:], profile.Certain
			}
		}
		return p.blob.OwnScope(), profile.Certain
	case atCheck, atPoll, atCall:
		if s := p.told(e); s != nil {
			return s, p.certainty(e, s)
		}
	}
	return nil, profile.Guessed
}

// byRoute returns the methods at an instruction of which it is known for which bytecodes compilers make such code: a
// bytecode of that kind on the route. name says for which. nil: the instruction tells nothing, or there is no such
// bytecode.
func (p *place) byRoute(n int32) (s []vmstructs.Scope, sure profile.Certainty,
	name string) {
	m := p.code
	if p.blob.Level != levelC2 || n < 0 || int(n) >= len(m.list) {
		return nil, profile.Guessed, ""
	}
	switch {
	case m.list[n].swaps:
		name = swap
	case m.inBarrier(n):
		name = storeBarrier
	default:
		return nil, profile.Guessed, ""
	}
	s, sure = p.between(n, n, bytecodesOf(name))
	if sure == profile.Guessed {
		return nil, profile.Guessed, name
	}
	return s, sure, name
}

// maxLock bounds the instructions between the exchange of a fast lock and the branch to the slow one.
const maxLock = 12

// lockAt returns the methods at the code that takes or gives back a monitor, from the instruction on that exchanges the
// header of the object to the branch to the slow way: C2 makes them in one piece too, since the branch tests what the
// exchange left in the flags (opto/locknode.hpp, FastLockNode). nil: there is no such code.
func (p *place) lockAt(n int32) []vmstructs.Scope {
	m := p.code
	if p.blob.Level != levelC2 || n < 0 || int(n) >= len(m.list) {
		return nil
	}
	if m.list[n].swaps {
		n = m.next(n)
	} else if before := m.before(n); before == notInCode || !m.list[before].swaps {
		return nil
	}
	for range maxLock {
		if n < 0 || int(n) >= len(m.list) || m.list[n].swaps {
			return nil
		}
		i := m.list[n]
		if e := p.evidenceAt(n); e.kind == atTrap || e.kind == atCheck {
			if s := p.told(e); s != nil && p.locks(s[0]) {
				return s
			}
			return nil
		} else if e.kind != noEvidence {
			return nil
		}
		switch i.flow {
		case arch.FlowNext, arch.FlowBranch:
			n = m.next(n)
		case arch.FlowJump:
			n = m.target(n)
		default:
			return nil
		}
	}
	return nil
}

// locks reports whether a monitor is taken or given back at a place.
func (f *Finder) locks(s vmstructs.Scope) bool {
	code := f.bytecodes(s.Method)
	i := vmstructs.BytecodeAt(code, s.BCI)
	if i < 0 || code[i].Returns() {
		return s.Method.Synchronized
	}
	return code[i].Op == vmstructs.OpMonitorenter || code[i].Op == vmstructs.OpMonitorexit
}
