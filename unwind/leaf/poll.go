package leaf

import (
	"goprof/arch"
	"goprof/profile"
	"goprof/vmstructs"
)

// A poll stands at the end of a loop's round. An instruction before may load what the poll reads.

// pollLoad is the poll for which the instruction loads.
func (p *place) pollLoad() evidence {
	if p.evidenceAt(p.n).kind != noEvidence {
		return evidence{}
	}
	return p.loadsForPoll(p.n)
}

// mayPoll reports whether C2 may have made a poll for a place: one that leads back, or may do so.
func (p *place) mayPoll(s vmstructs.Scope) bool {
	b := p.bytecodeOf(s)
	return b != nil && b.Target <= b.BCI && (b.Target >= 0 || b.Branches())
}

// maxPoll bounds the instructions from the load of what a poll reads to the poll.
const maxPoll = 4

// loadsForPoll returns the poll before which an instruction loads what the poll reads. Other instructions may stand
// between them, but the load's register is the poll's.
func (q *question) loadsForPoll(n int32) evidence {
	m := q.code
	if i := m.list[n]; i.base != arch.BaseThread || i.flow != arch.FlowNext {
		return evidence{}
	}
	load, _ := m.operands(n)
	for at, k := m.next(n), 0; at != notInCode && k < maxPoll; at, k = m.next(at), k+1 {
		if e := q.evidenceAt(at); e.kind == atPoll {
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

// besidePoll tells what the route tells, if the poll beside an instruction of a loop has the same methods. What counts
// the rounds stands right before a poll, and the comparison that ends the loop right behind.
func (p *place) besidePoll() verdict {
	n := p.pollBeside()
	if n == notInCode {
		return verdict{}
	}
	if e := p.evidenceAt(n); e.kind == atPoll {
		return p.confirmedBy(p.told(e))
	}
	return verdict{}
}

// pollBeside is the instruction beside which a poll would stand, notInCode if there is none.
func (p *place) pollBeside() int32 {
	m := p.code
	if m.list[p.n].kindOf == arch.KindCompare {
		return m.before(p.n)
	}
	o, ok := m.operands(p.n)
	if !ok || !o.Computes || m.list[p.n].base != arch.BaseNone {
		return notInCode
	}
	next := m.next(p.n)
	if next != notInCode && p.loadsForPoll(next).kind == atPoll {
		next = m.next(next)
	}
	return next
}

// confirmedBy tells what the route tells as certain, if something else tells the same methods: an instruction beside
// this one that is known, and that has to do with it.
func (p *place) confirmedBy(other []vmstructs.Scope) verdict {
	s := p.route().scopes
	if other == nil || s[0].BCI < 0 || !sameMethods(other, s) {
		return verdict{}
	}
	return verdict{s, profile.Certain}
}
