package leaf

import "goprof/arch"

func (p *place) callMark() evidence {
	if pc := p.markAt(p.n); pc != 0 {
		return evidence{kind: atCall, scope: pc}
	}
	return evidence{}
}

// maxCallMark bounds the instructions of a mark: arm64 has three.
const maxCallMark = 3

// markAt returns the call's return address if an instruction is part of the mark behind a call, and 0 otherwise.
// HotSpot puts a mark behind each call since 19 (cpu/*/macroAssembler_*.cpp, post_call_nop). On x86 it is a nop with
// data in its displacement, on arm64 a nop and two instructions without effect that hold data.
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
