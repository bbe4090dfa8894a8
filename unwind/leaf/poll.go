package leaf

import (
	"goprof/arch"
	"goprof/vmstructs"
)

// maxPoll bounds the instructions from the load of the polling page's address to the poll.
const maxPoll = 4

// pollLoad returns the poll whose address the instruction loads. Other instructions may be in between, but the load and
// the poll have the same register.
func (p *place) pollLoad() evidence {
	m := p.code
	i := &m.list[p.n]
	if i.base != arch.BaseThread || i.flow != arch.FlowNext || p.evidenceAt(p.n).kind != noEvidence {
		return evidence{}
	}
	load, _ := m.operands(p.n)
	for at, k := m.next(p.n), 0; at != notInCode && k < maxPoll; at, k = m.next(at), k+1 {
		if e := p.evidenceAt(at); e.kind == atPoll {
			if o, ok := m.operands(at); k == 0 || ok && o.Reads&load.Writes != 0 {
				return e
			}
			break
		}
		if o, ok := m.operands(at); !ok || (o.Writes|o.Reads)&load.Writes != 0 || m.list[at].flow != arch.FlowNext {
			break
		}
	}
	return evidence{}
}

// mayPoll reports whether C2 may have made a poll for a scope's bytecode, because the bytecode may jump back.
func (p *place) mayPoll(s vmstructs.Scope) bool {
	b := p.bytecodeOf(s)
	return b != nil && b.Target <= b.BCI && (b.Target >= 0 || b.Branches())
}
