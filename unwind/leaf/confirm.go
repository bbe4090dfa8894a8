package leaf

import (
	"goprof/arch"
	"goprof/vmstructs"
)

// The route says which methods run at an instruction, and is not sure. Something else may say the same: an instruction
// beside it that is known, and that has to do with it. If two say the same, it is certain.

// confirmed reports whether something else says which methods run at an instruction.
func (p *place) confirmed(n int32, s []vmstructs.Scope) bool {
	if p.blob.Level != levelC2 || n < 0 || int(n) >= len(p.code.list) || s[0].BCI < 0 {
		return false
	}
	for _, say := range []func(int32) []vmstructs.Scope{p.besidePoll, p.byTaker} {
		if other := say(n); other != nil && sameMethods(other, s) {
			return true
		}
	}
	return false
}

// besidePoll returns the methods of the poll beside an instruction of a loop. A poll stands at the end of a round. What
// counts the rounds stands right before it, and the comparison that ends the loop right behind.
func (p *place) besidePoll(n int32) []vmstructs.Scope {
	m := p.code
	if m.list[n].kindOf == arch.KindCompare {
		if before := m.before(n); before != notInCode {
			return p.toldOfPoll(before)
		}
		return nil
	}
	o, ok := m.operands(n)
	if !ok || !o.Computes || m.list[n].base != arch.BaseNone {
		return nil
	}
	next := m.next(n)
	if next != notInCode && p.pollAt(next).kind == atPoll {
		next = m.next(next)
	}
	if next == notInCode {
		return nil
	}
	return p.toldOfPoll(next)
}

func (p *place) toldOfPoll(n int32) []vmstructs.Scope {
	if e := p.evidenceAt(n); e.kind == atPoll {
		return p.told(e)
	}
	return nil
}
