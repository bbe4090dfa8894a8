package arch

// Ahead is described at Tracer.
func (t *amd64Tracer) Ahead(code []byte, base, pc uint64, stop func(pc uint64) bool) (uint64, bool) {
	if pc < base || pc-base >= uint64(len(code)) || uint64(len(code)) >= 1<<31 {
		return 0, false
	}
	t.code, t.base = code, base
	t.forget()
	return t.ways.ahead(t, base, pc, stop)
}

func (t *amd64Tracer) goes(at uint32) (uint32, way) {
	var in x86Inst
	if !decodeX86(t.code[at:], &in) {
		return 0, wayEnds
	}
	next := at + uint32(in.Len)
	if in.Vec || in.Map > 1 {
		return next, wayGoesOn
	}
	if in.Map == 1 {
		switch op := in.Op; {
		case op >= 0x80 && op <= 0x8f: // jcc
			return t.fork(next, &in), wayGoesOn
		case op == 0x0b: // ud2
			return 0, wayEnds
		}
		return next, wayGoesOn
	}
	switch op := in.Op; {
	case op >= 0x70 && op <= 0x7f, op >= 0xe0 && op <= 0xe3: // jcc, loop
		return t.fork(next, &in), wayGoesOn
	case op == 0xe9, op == 0xeb: // jmp
		if target, ok := t.target(next, &in); ok {
			return target, wayGoesOn
		}
		return 0, wayEnds
	case op == 0xc3, op == 0xc2:
		return 0, wayReturns
	case op == 0xff && (in.OpX == 4 || in.OpX == 5): // jmp r/m
		return 0, wayEnds
	case op == 0xcc, op == 0xf4, op == 0xcb, op == 0xca, op == 0xcf: // int3, hlt, far returns
		return 0, wayEnds
	}
	return next, wayGoesOn
}

func (t *amd64Tracer) fork(next uint32, in *x86Inst) uint32 {
	target, ok := t.target(next, in)
	return t.ways.fork(next, target, ok)
}

// target is where a jump goes, if that is in the code.
func (t *amd64Tracer) target(next uint32, in *x86Inst) (uint32, bool) {
	target := int64(next) + in.Imm
	return uint32(target), target >= 0 && target < int64(len(t.code))
}
