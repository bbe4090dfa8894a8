package leaf

import (
	"slices"

	"goprof/profile"
	"goprof/vmstructs"
)

// A loop without a call or a poll has no record. If a path leads from a pc back to itself without evidence, the pc is
// in such a loop, most likely in one on the route. The position on the route would be wrong there, because it ignores
// how often a loop runs and how far it is unrolled.

const maxWayLoops = 8

// wayLoop is a loop on a route: the bytecodes from begin to end of the innermost method of chain.
type wayLoop struct {
	chain      []vmstructs.Scope
	begin, end int32
}

// loop returns the methods of the loop in which the instruction most likely is, if the route gives others. It uses a
// route of its own, which may lead into methods that only a profile suggests. So the result is never certain.
func (p *place) loop() verdict {
	supposed := p.route().scopes
	if s := p.loopBesides(supposed); s != nil && !sameMethods(s, supposed) {
		return verdict{s, profile.Guessed}
	}
	return verdict{}
}

// loopBesides returns the methods of the loop on the route in which the thread is. It returns nil if there is none, or
// if all loops on the route are in the supposed methods.
func (p *place) loopBesides(supposed []vmstructs.Scope) []vmstructs.Scope {
	ahead, behind := p.nearest(p.n, false), p.nearest(p.n, true)
	to, from := p.methodsOf(ahead), p.methodsOf(behind)
	if to == nil && from == nil {
		return nil
	}
	if ahead.kind == atReturn {
		to = []vmstructs.Scope{{Method: p.blob.Method, BCI: toReturn, Line: to[0].Line}}
	}
	if behind.kind == atPiece {
		from = p.behindPiece(from)
	}
	r := router{q: p.question, at: p.n, guess: true}
	r.locate(from, to, behind.far, ahead.far)
	r.enterLoops()
	if r.loopsOnlyIn(supposed) {
		return nil
	}
	return r.loopOnWay()
}

// notePassed notes the loops that a leg passes: the leg reaches a loop's beginning, but does not jump back. path has
// the indexes of the leg's bytecodes.
func (r *router) notePassed(chain []vmstructs.Scope, code []vmstructs.Bytecode, path []int32) {
	for i := range code {
		b := &code[i]
		if b.Target < 0 || b.Target > b.BCI || slices.Contains(path, int32(i)) {
			continue
		}
		begin := vmstructs.BytecodeAt(code, b.Target)
		if begin < 0 || !slices.Contains(path, int32(begin)) || len(r.passed) >= maxWayLoops {
			continue
		}
		if slices.ContainsFunc(code[begin:i], func(b vmstructs.Bytecode) bool { return isInvoke(b.Op) }) {
			r.passed = append(r.passed, wayLoop{chain, b.Target, b.BCI})
		}
	}
}

// enterLoops adds one round of each loop that the route passes. If there is evidence only before and behind a loop, the
// route with the least work does not enter the loop. Example: JDK 8 has no poll in a counted loop. A loop needs no such
// legs if a record names a method that is inlined into it, because then the loop has evidence of its own.
func (r *router) enterLoops() {
	for i := 0; i < len(r.passed); i++ { // a method that is inlined there may have loops, too
		l := r.passed[i]
		if r.recordsInvoke(l) || !r.goesAround(r.at, l.chain, l.begin, l.end) {
			continue
		}
		begin := len(r.legs)
		r.through(l.chain, l.begin, false, l.end, false)
		for k := begin; k < len(r.legs); k++ {
			r.legs[k].entered = true
		}
	}
}

func (r *router) recordsInvoke(l wayLoop) bool {
	place := vmstructs.PlaceOf(l.chain)
	return slices.ContainsFunc(r.q.bytecodes(l.chain[0].Method), func(b vmstructs.Bytecode) bool {
		return b.BCI >= l.begin && b.BCI <= l.end && isInvoke(b.Op) && r.inlinedAt(place.Site(b.BCI)) != 0
	})
}

// loopsOnlyIn reports whether all loops on the route are in the given methods, and no leg lacks a position
// (hasNoPosition).
func (r *router) loopsOnlyIn(methods []vmstructs.Scope) bool {
	for i := range r.legs {
		g := &r.legs[i]
		if g.hasNoPosition() || hasLoop(r.q.bytecodes(g.scopes[0].Method)) && !sameMethods(g.scopes, methods) {
			return false
		}
	}
	return true
}

func hasLoop(code []vmstructs.Bytecode) bool {
	return slices.ContainsFunc(code, func(b vmstructs.Bytecode) bool { return b.Target >= 0 && b.Target <= b.BCI })
}

// loopOnWay returns the methods of the only loop on the path in which the thread may be, nil if there is none, or more
// than one. Loops into which nothing is inlined come first, because the path back may also be that of a loop around one
// of these.
func (r *router) loopOnWay() []vmstructs.Scope {
	inner, outer := r.loopsOnWay()
	switch {
	case len(inner) == 1:
		return inner[0].first()
	case len(inner) == 0 && len(outer) == 1:
		return r.heaviest(&outer[0])
	}
	return nil
}

// loopsOnWay returns the loops into which nothing is inlined, and the other loops that matter to heaviest. The search
// for a path back takes longest, so it is made last.
func (r *router) loopsOnWay() (inner, outer []wayLoop) {
	tried, weighs := 0, slices.ContainsFunc(r.legs, leg.hasNoPosition)
	for i := range r.legs {
		chain := r.legs[i].scopes
		if r.hadLoopOf(chain, i) {
			continue
		}
		code := r.q.bytecodes(chain[0].Method)
		for k := range code {
			b := &code[k]
			if b.Target < 0 || b.Target > b.BCI {
				continue
			}
			if tried++; tried > maxWayLoops {
				return nil, nil
			}
			none := r.inlinesNone(chain, code, b.Target, b.BCI)
			if !none && (len(inner) > 0 || !weighs) || !r.goesAround(r.at, chain, b.Target, b.BCI) {
				continue
			}
			loop := wayLoop{chain, b.Target, b.BCI}
			if none {
				inner = append(inner, loop)
				break // one loop of a method is enough to name the method
			}
			outer = append(outer, loop)
		}
	}
	return inner, outer
}

// hadLoopOf reports whether an earlier leg has the same methods: a method has a leg before a call and one behind it.
func (r *router) hadLoopOf(chain []vmstructs.Scope, before int) bool {
	for i := range r.legs[:before] {
		if sameMethods(r.legs[i].scopes, chain) {
			return true
		}
	}
	return false
}

// first returns the methods at the beginning of the loop.
func (l *wayLoop) first() []vmstructs.Scope {
	moved := append([]vmstructs.Scope(nil), l.chain...)
	moved[0].BCI, moved[0].Line = l.begin, l.chain[0].Method.Line(l.begin)
	return moved
}

// hasNoPosition reports whether a leg has no position on the route: either only a profile suggests the leg, or it
// belongs to a loop that the route passes.
func (l leg) hasNoPosition() bool { return l.byProfile || l.entered }

// heaviest returns the methods of the leg with two thirds of the work in a loop, if that leg has no position. The
// position on the route finds the other legs.
func (r *router) heaviest(l *wayLoop) (scopes []vmstructs.Scope) {
	most, all := 0, 0
	for i := range r.legs {
		g := &r.legs[i]
		if !l.has(g.scopes) {
			continue
		}
		if all += g.work; g.hasNoPosition() && g.work > most {
			scopes, most = g.scopes, g.work
		}
	}
	if most*3 < all*2 {
		return nil
	}
	return scopes
}

// has reports whether some methods run in the loop.
func (l *wayLoop) has(scopes []vmstructs.Scope) bool {
	deeper := len(scopes) - len(l.chain)
	if deeper < 0 || scopes[deeper].Method != l.chain[0].Method {
		return false
	}
	for i := 1; i < len(l.chain); i++ {
		if scopes[deeper+i] != l.chain[i] {
			return false
		}
	}
	return deeper == 0 || scopes[deeper].BCI >= l.begin && scopes[deeper].BCI <= l.end
}
