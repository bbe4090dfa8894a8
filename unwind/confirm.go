package unwind

import (
	"goprof/arch"
	"goprof/vmstructs"
)

// The route says which methods run at an instruction, and is not sure. Something else may say the same: an instruction
// beside it that is known, and that has to do with it. If two say the same, it is certain.

// confirmed reports whether something else says which methods run at an instruction.
func (w *Walker) confirmed(b *vmstructs.Blob, m *codeMap, n int32, s []vmstructs.Scope) bool {
	if b.Level != levelC2 || n < 0 || int(n) >= len(m.list) || s[0].BCI < 0 {
		return false
	}
	for _, say := range []func(*vmstructs.Blob, *codeMap, int32) []vmstructs.Scope{w.besidePoll, w.byTaker} {
		if other := say(b, m, n); other != nil && sameMethods(other, s) {
			return true
		}
	}
	return false
}

// besidePoll returns the methods of the poll beside an instruction of a loop. A poll stands at the end of a round. What
// counts the rounds stands right before it, and the comparison that ends the loop right behind.
func (w *Walker) besidePoll(b *vmstructs.Blob, m *codeMap, n int32) []vmstructs.Scope {
	if m.list[n].kindOf == arch.KindCompare {
		if before := m.before(n); before != notInCode {
			return w.toldOfPoll(b, m, before)
		}
		return nil
	}
	o, ok := m.operands(n)
	if !ok || !o.Computes || m.list[n].base != arch.BaseNone {
		return nil
	}
	next := m.next(n)
	if next != notInCode && w.pollAt(b, m, next).kind == atPoll {
		next = m.next(next)
	}
	if next == notInCode {
		return nil
	}
	return w.toldOfPoll(b, m, next)
}

func (w *Walker) toldOfPoll(b *vmstructs.Blob, m *codeMap, n int32) []vmstructs.Scope {
	if e := w.evidenceAt(b, m, n); e.kind == atPoll {
		return w.told(b, e)
	}
	return nil
}
