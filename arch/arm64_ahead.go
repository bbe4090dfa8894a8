package arch

// Ahead is described at Tracer, its rules at amd64Tracer's.
func (t *arm64Tracer) Ahead(code []byte, base, pc uint64, stop func(pc uint64) bool) (uint64, bool) {
	if !t.begins(code, base, pc) {
		return 0, false
	}
	t.ways = append(t.ways[:0], uint32(pc-base))
	for steps := 0; len(t.ways) > 0 && steps < maxTraceSteps; {
		at := t.ways[len(t.ways)-1]
		t.ways = t.ways[:len(t.ways)-1]
		for goesOn := true; goesOn && steps < maxTraceSteps && t.isNew(at, false); steps++ {
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

// goes tells where the instruction at an offset goes on, and keeps the other way of a branch for later.
func (t *arm64Tracer) goes(at uint32) (uint32, way) {
	var in a64Inst
	if !decodeA64(t.code[at:], &in) {
		return 0, wayEnds
	}
	next := at + 4
	switch in.Op {
	case a64Cond:
		return t.fork(at, &in), wayGoesOn
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

// fork chooses a way at a branch.
func (t *arm64Tracer) fork(at uint32, in *a64Inst) uint32 {
	next := at + 4
	target, ok := t.target(at, in)
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
