package unwind

import "goprof/vmstructs"

// A loop that has neither call nor poll has no record. If the code goes around from a pc to itself past no evidence, and
// one method alone on the way has a loop into which nothing is inlined, the pc is most likely in that loop: a
// position in proportion to the work of bytecodes does not know how often a loop turns, nor how far it is unrolled.

// maxWayLoops bounds the loops that are tried.
const maxWayLoops = 8

// loopOnWay returns the methods of the only loop on the way that may be the one in which the thread is, nil if there
// is none, or more than one.
func (r *router) loopOnWay() (found []vmstructs.Scope) {
	if r.level != levelC2 || r.code == nil {
		return nil
	}
	tried := 0
	for i := range r.legs {
		chain := r.legs[i].scopes
		if i > 0 && chain[0].Method == r.legs[i-1].scopes[0].Method || found != nil && sameMethods(found, chain) {
			continue // one method's legs before and behind a call
		}
		code := r.w.bytecodes(chain[0].Method)
		for k := range code {
			b := &code[k]
			if b.Target < 0 || b.Target > b.BCI || !r.inlinesNone(chain, code, b.Target, b.BCI) {
				continue
			}
			if tried++; tried > maxWayLoops {
				return nil
			}
			if !r.goesAround(r.at, chain, b.Target, b.BCI) {
				continue
			}
			if found != nil {
				return nil
			}
			found = at(chain, b.Target)
			break
		}
	}
	return found
}

// at returns the methods at another bytecode of the innermost one.
func at(chain []vmstructs.Scope, bci int32) []vmstructs.Scope {
	moved := append([]vmstructs.Scope(nil), chain...)
	moved[0].BCI, moved[0].Line = bci, chain[0].Method.Line(bci)
	return moved
}
