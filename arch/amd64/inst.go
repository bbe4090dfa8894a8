package amd64

import "goprof/arch"

// Read is described at arch.Code.
func (code) Read(code []byte, at uint32, out *arch.Inst) bool {
	var in inst
	if uint64(at) >= uint64(len(code)) || uint64(len(code)) >= 1<<31 || !decode(code[at:], &in) {
		return false
	}
	*out = arch.Inst{Len: uint32(in.Len)}
	if in.Mem && in.Base >= 0 {
		out.Disp, out.Base = in.Disp, baseOf(in.Base)
		out.Loads = in.loads()
	}
	out.Kind = in.kind(out.Base)
	if in.Map == 0 && !in.Vec && in.Op&^7 == 0xb8 && dwarf[in.RM&15] == rsi && !in.W { // mov esi, imm32
		out.Arg = int32(in.Imm)
	}
	if in.Map == 0 && !in.Vec {
		out.Stores = in.Mem && (in.Op == 0x88 || in.Op == 0x89 || (in.Op == 0xc6 || in.Op == 0xc7) && in.OpX == 0) // mov
		out.Byte = in.Mem && in.Op&1 == 0 && (in.Op < 0x40 && in.Op&7 < 4 || in.Op == 0x80 || in.Op == 0x84 ||
			in.Op == 0x88 || in.Op == 0xc6 || in.Op == 0xf6)
		if in.Op == 0xc1 && in.OpX == 5 && in.W && !in.Mem { // shr
			out.Shift = uint8(in.Imm)
		}
		out.Widens = in.Op == 0xc1 && in.OpX == 4 && in.W && !in.Mem && in.Imm == 3 // shl
	}
	if in.Idx && (out.Loads || out.Stores) {
		out.Indexed = true
		out.Narrow = in.Scale == 3 && dwarf[in.Base&15] == r12
	}
	if in.Vec || in.Map > 1 {
		return true
	}
	out.Swaps = in.Map == 1 && in.Op == 0xb1
	target := int64(at) + int64(in.Len) + in.Imm
	switch op := in.Op; {
	case in.Map == 1 && op >= 0x80 && op <= 0x8f, // jcc
		in.Map == 0 && (op >= 0x70 && op <= 0x7f || op >= 0xe0 && op <= 0xe3): // jcc, loop
		out.Flow = arch.FlowBranch
	case in.Map == 1:
		if op == 0x0b { // ud2
			out.Flow = arch.FlowEnds
		}
		return true
	case op == 0xe9, op == 0xeb:
		out.Flow = arch.FlowJump
	case op == 0xe8:
		out.Flow = arch.FlowCall
	case op == 0xff && in.OpX == 2:
		out.Flow = arch.FlowCall
		return true
	case op == 0xff && (in.OpX == 4 || in.OpX == 5):
		out.Flow = arch.FlowJump
		return true
	case op == 0xc3, op == 0xc2:
		out.Flow = arch.FlowReturn
		return true
	case op == 0xcc, op == 0xf4, op == 0xcb, op == 0xca, op == 0xcf: // int3, hlt, far returns
		out.Flow = arch.FlowEnds
		return true
	default:
		return true
	}
	out.HasTarget = target >= 0 && target < int64(len(code))
	out.Target = uint32(target)
	return true
}

// baseOf returns what a base register holds. HotSpot keeps the thread in r15 (x86.ad, r15_thread).
func baseOf(base int8) arch.Base {
	switch dwarf[base&15] {
	case rsp:
		return arch.BaseStack
	case r15:
		return arch.BaseThread
	}
	return arch.BaseOther
}

func (in *inst) kind(base arch.Base) arch.Kind {
	op := in.Op
	switch {
	case in.Mem && (in.Lock || in.Map == 0 && !in.Vec && op&^1 == 0x86): // xchg with memory needs no lock
		return arch.KindAtomic
	case in.Map > 1:
		return arch.KindOther
	}
	onStack := base == arch.BaseStack && !in.Idx
	if in.Map == 1 || in.Vec {
		switch op {
		case 0x10, 0x11, 0x28, 0x29, 0x6e, 0x6f, 0x7e, 0x7f, 0xd6: // moves of xmm registers
			if !in.Mem || onStack {
				return arch.KindCopy
			}
		case 0x1f, 0x77: // nop; vzeroupper, which C2 puts before calls
			return arch.KindNop
		case 0x2e, 0x2f: // ucomis, comis
			return arch.KindCompare
		case 0x0d, 0x18: // prefetchw, prefetch
			return arch.KindPrefetch
		}
		return arch.KindOther
	}
	switch {
	case op&^7 == 0x58 && dwarf[in.RM&15] == rbp, // pop rbp: C2's epilogue pops nothing else; add to rsp
		(op == 0x81 || op == 0x83) && in.OpX == 0 && !in.Mem && dwarf[in.RM&15] == rsp:
		return arch.KindLeave
	case op&^7 == 0xb8 && in.W: // movabs
		return arch.KindLong
	case op == 0x89 || op == 0x8b: // mov
		if !in.Mem || onStack {
			return arch.KindCopy
		}
	case onStack && (op == 0xff && in.OpX == 6 || op == 0x8f && in.OpX == 0): // push, pop: from the stack to the stack
		return arch.KindCopy
	case in.isConstant(onStack):
		return arch.KindConst
	case op == 0x90 && in.RM == 0:
		return arch.KindNop
	case op >= 0x38 && op <= 0x3d, op == 0x84, op == 0x85, op == 0xa8, op == 0xa9, // cmp, test
		op >= 0x80 && op <= 0x83 && in.OpX == 7, (op == 0xf6 || op == 0xf7) && in.OpX < 2:
		return arch.KindCompare
	}
	return arch.KindOther
}

// isConstant reports whether an instruction puts a constant of 32 bits or an address of the stack somewhere.
func (in *inst) isConstant(onStack bool) bool {
	switch op := in.Op; {
	case op&^7 == 0xb8, // mov
		(op == 0x31 || op == 0x33) && !in.Mem && in.Reg == in.RM, // xor: zero
		op == 0x8d && onStack: // lea
		return true
	case op == 0xc7 && in.OpX == 0: // mov
		return !in.Mem || onStack
	}
	return false
}

// loads reports whether an instruction copies memory to a register: mov, movsxd, movzx, movsx, movss and movsd.
func (in *inst) loads() bool {
	switch op := in.Op; {
	case in.Map == 0 && !in.Vec:
		return op == 0x8b || op == 0x63
	case in.Map == 1 && !in.Vec && (op == 0xb6 || op == 0xb7 || op == 0xbe || op == 0xbf):
		return true
	}
	return in.Map == 1 && in.Op == 0x10
}
