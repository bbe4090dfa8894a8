package arch

// reader is what Ahead needs of a tracer: its CPU's instructions.
type reader interface {
	// isNew reports whether an offset is one of the code to which no way has led yet.
	isNew(at uint32) bool
	// goes tells where the instruction at an offset goes on, and keeps the other way of a branch for later.
	goes(at uint32) (next uint32, w way)
}

// ways are offsets from which code is still to be read ahead.
type ways []uint32

// ahead is Tracer.Ahead. What the instructions compute does not matter here, only where they go.
func (w *ways) ahead(r reader, base, pc uint64, stop func(pc uint64) bool) (uint64, bool) {
	*w = append((*w)[:0], uint32(pc-base))
	for steps := 0; len(*w) > 0 && steps < maxTraceSteps; {
		at := (*w)[len(*w)-1]
		*w = (*w)[:len(*w)-1]
		for goesOn := true; goesOn && steps < maxTraceSteps && r.isNew(at); steps++ {
			if here := base + uint64(at); here != pc && stop(here) {
				return here, true
			}
			var how way
			if at, how = r.goes(at); how == wayReturns {
				return 0, false
			} else {
				goesOn = how == wayGoesOn
			}
		}
	}
	return 0, false
}

// fork chooses a way at a branch. Compilers put what they expect right behind it; but a branch back is
// the end of a loop, which is expected to be run again.
func (w *ways) fork(next, target uint32, isCode bool) uint32 {
	switch {
	case !isCode || len(*w) >= maxTraceWays:
		return next
	case target < next:
		*w = append(*w, next)
		return target
	}
	*w = append(*w, target)
	return next
}
