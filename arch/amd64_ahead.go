package arch

// Ahead is described at Tracer. What the instructions compute does not matter here, only where
// they go.
func (t *amd64Tracer) Ahead(code []byte, base, pc uint64, stop func(pc uint64) bool) (uint64, bool) {
	if pc < base || pc-base >= uint64(len(code)) || uint64(len(code)) >= 1<<31 {
		return 0, false
	}
	t.code, t.base = code, base
	t.forget()
	t.ways = append(t.ways[:0], uint32(pc-base))
	for steps := 0; len(t.ways) > 0 && steps < maxTraceSteps; {
		at := t.ways[len(t.ways)-1]
		t.ways = t.ways[:len(t.ways)-1]
		for goesOn := true; goesOn && steps < maxTraceSteps && t.isNew(at); steps++ {
			if here := base + uint64(at); here != pc && stop(here) {
				return here, true
			}
			var w way
			if at, w = t.goes(at); w == wayReturns {
				return 0, false
			} else {
				goesOn = w == wayGoesOn
			}
		}
	}
	return 0, false
}

// goes tells where the instruction at an offset goes on, and keeps the other way of a branch for
// later. Compilers put what they expect right behind a branch; but a branch back is the end of a
// loop, which is expected to be run again.
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

// fork chooses a way at a branch.
func (t *amd64Tracer) fork(next uint32, in *x86Inst) uint32 {
	target, ok := t.target(next, in)
	switch {
	case !ok || len(t.ways) >= maxTraceWays:
		return next
	case target < next:
		t.ways = append(t.ways, next)
		return target
	}
	t.ways = append(t.ways, target)
	return next
}

// target is where a jump goes, if that is in the code.
func (t *amd64Tracer) target(next uint32, in *x86Inst) (uint32, bool) {
	target := int64(next) + in.Imm
	return uint32(target), target >= 0 && target < int64(len(t.code))
}
