package arch

// Ahead is described at Tracer.
func (t *arm64Tracer) Ahead(code []byte, base, pc uint64, stop func(pc uint64) bool) (uint64, bool) {
	if !t.begins(code, base, pc) {
		return 0, false
	}
	return t.ways.ahead(t, base, pc, stop)
}

func (t *arm64Tracer) isNew(at uint32) bool { return t.isNewFor(at, false) }

func (t *arm64Tracer) goes(at uint32) (uint32, way) {
	var in a64Inst
	if !decodeA64(t.code[at:], &in) {
		return 0, wayEnds
	}
	next := at + 4
	switch in.Op {
	case a64Cond:
		target, ok := t.target(at, &in)
		return t.ways.fork(next, target, ok), wayGoesOn
	case a64Branch:
		if target, ok := t.target(at, &in); ok {
			return target, wayGoesOn
		}
		return 0, wayEnds
	case a64Ret:
		return 0, wayReturns
	case a64Jump, a64Trap:
		return 0, wayEnds
	}
	return next, wayGoesOn
}
