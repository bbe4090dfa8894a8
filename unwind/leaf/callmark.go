package leaf

import "goprof/arch"

func (p *place) callMark() evidence {
	if pc := p.markAt(p.n); pc != 0 {
		return evidence{kind: atCall, scope: pc}
	}
	return evidence{}
}

// maxCallMark bounds the instructions of a mark. On arm64 there are three.
const maxCallMark = 3

// markAt returns the return address of the call if an instruction is part of the mark behind a call, otherwise 0. Since
// JDK 19 HotSpot puts a mark behind each call (cpu/*/macroAssembler_*.cpp, post_call_nop). On x86 the mark is a nop
// with data in its displacement. On arm64 it is a nop and two instructions without effect, which hold data.
func (q *question) markAt(n int32) (pc uint64) {
	m := q.code
	for range maxCallMark {
		if n < 0 || int(n) >= len(m.list) || m.list[n].kindOf != arch.KindNop || m.list[n].disp == 0 {
			return 0
		}
		before := m.before(n)
		if before != notInCode && m.list[before].flow == arch.FlowCall {
			if pc = q.blob.Begin + uint64(m.list[n].at); q.blob.HasPcDesc(pc) {
				return pc
			}
			return 0
		}
		n = before
	}
	return 0
}
