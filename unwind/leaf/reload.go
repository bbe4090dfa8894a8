package leaf

import (
	"goprof/arch"
	"goprof/profile"
)

// If there are more values than registers, C2 keeps some values on the stack. It loads each of them right before the
// instruction that uses it (opto/reg_split.cpp, PhaseChaitin::Split). Such a load belongs to no bytecode. So the load
// gets the methods of the instruction that uses the value.
//
// C2 also makes a constant again right before each use (opto/node.hpp, Node::rematerialize). On arm64 few constants fit
// into the instruction that uses them. A constant for a class, for example, takes two separate instructions. These two
// also get the methods of the instruction that uses the constant. On x86 most constants fit into the instruction. A
// constant with an instruction of its own has several uses there, so this rule does not apply.

const maxConstant = 4

// reloadedFor returns the instruction for which instruction n loads a value from the stack or makes a constant. It
// returns notInCode if n does neither, or if the other instruction is not known.
func (m *codeMap) reloadedFor(n int32) int32 {
	if n < 0 || int(n) >= len(m.list) {
		return notInCode
	}
	if i := &m.list[n]; i.kindOf == arch.KindCopy && i.base == arch.BaseStack && i.loads {
		return m.taker(n)
	}
	for range maxConstant {
		if !m.cpu.ConstantsApart || !m.makesConstant(n) {
			return notInCode
		}
		if n = m.taker(n); n == notInCode || !m.makesConstant(n) {
			return n
		}
	}
	return notInCode
}

// makesConstant reports whether an instruction puts a constant into a register, or a part of one.
func (m *codeMap) makesConstant(n int32) bool {
	i := &m.list[n]
	return (i.kindOf == arch.KindConst || i.kindOf == arch.KindLong) && i.base == arch.BaseNone
}

// reload returns the methods at the instruction for which this one loads a value or makes a constant, if they are
// certain.
func (p *place) reload() verdict {
	if to := p.code.reloadedFor(p.n); to != notInCode {
		return verdict{p.at(to).certainly(), profile.Certain}
	}
	return verdict{}
}
