package leaf

import (
	"slices"

	"goprof/vmstructs"
)

// A route is the bytecodes that the program executes between two places in compiled code at which the inlined methods
// are known: first in the methods that it leaves, then in the method that both places have in common, then in the
// methods that it enters. A pc's position between the two places in machine code gives its position on the route
// through bytecodes.

// leg is a part of a route with the same innermost method.
type leg struct {
	scopes    []vmstructs.Scope
	work      int
	byProfile bool // the method is known to be inlined there only from a profile
	entered   bool // a round of a loop that the route passes: see enterLoops
}

// maxLegs bounds a route. Methods are seldom inlined deeper than 15.
const maxLegs = 64

// router finds the route between two places of one nmethod.
type router struct {
	q          *question // about the nmethod
	space      int       // instructions between the two places
	at         int32     // the instruction in question, between them
	behindPoll bool      // the first place is a poll
	legs       []leg
	asked      int
	calls      callsBytecode // nil: the thread is not in a call
	load       callsBytecode // nil: the thread is not at a load: see loadAt
	found      []foundCall   // the bytecodes on the route for which calls or load is true
	lost       bool          // a part of the route is not known
	offWay     bool          // found has bytecodes off the route
	trail      []trailed     // the bytecodes of the route, if trails is set
	trails     bool
	guess      bool      // the route also leads into methods that only a profile suggests: see loopBesides
	passed     []wayLoop // loops that the route passes, if guess is set: see enterLoops
	around     *around   // the last search of turns
	*weights
}

// foundCall is a bytecode that may have called the code in which the thread is, and the route's work before that
// bytecode.
type foundCall struct {
	scopes []vmstructs.Scope
	before int
}

// between returns the methods that run at an instruction between two places. The instruction is done instructions
// behind the first place, and left instructions before the second.
func (r *router) between(from, to []vmstructs.Scope, done, left int) []vmstructs.Scope {
	r.legs, r.space = r.q.legs[:0], done+left
	r.route(from, to)
	r.q.legs = r.legs
	total := 0
	for _, l := range r.legs {
		total += l.work
	}
	at := total * (2*done + 1) // position in half instructions, of 2 * (done + left)
	if r.calls != nil {
		if len(r.found) == 0 {
			r.anywhere(from, to)
			at = 0
		}
		if len(r.found) > 0 {
			return nearestCall(r.found, at, 2*(done+left))
		}
	}
	if r.isLoad() {
		return nearestCall(r.found, at, 2*(done+left))
	}
	for _, l := range r.legs {
		if at -= l.work * 2 * (done + left); at < 0 {
			return l.scopes
		}
	}
	return to
}

// route lists the legs of the route.
func (r *router) route(from, to []vmstructs.Scope) {
	r.weights = weightsOf(r.q.blob.Level)
	if len(from)+len(to) > maxLegs {
		r.addLeg(to, workUnread)
		return
	}
	f, t := len(from)-1, len(to)-1 // the outermost method is the last
	for f > 0 && t > 0 && from[f] == to[t] {
		f, t = f-1, t-1
	}
	for i := range f {
		r.through(from[i:], from[i].BCI, i > 0, toReturn, false)
	}
	if from[f].Method == to[t].Method {
		chain := from[f:]
		r.through(chain, from[f].BCI, f > 0, to[t].BCI, false)
	} else { // two methods that may be called at one place
		r.through(from[f:], from[f].BCI, f > 0, toReturn, false)
		r.through(to[t:], 0, false, to[t].BCI, false)
	}
	mark := len(r.legs)
	for i := t - 1; i >= 0; i-- {
		r.through(to[i:], 0, false, to[i].BCI, false)
	}
	share(r.legs[mark:], r.entering)
}

// share multiplies the work of legs by sixteenths / 16.
func share(legs []leg, sixteenths int) {
	for i := range legs {
		legs[i].work = legs[i].work * sixteenths / 16
	}
}

// addLeg adds a leg to the route, unless there are too many.
func (r *router) addLeg(scopes []vmstructs.Scope, work int) {
	if len(r.legs) < 4*maxLegs {
		r.legs = append(r.legs, leg{scopes: scopes, work: work})
	}
}

// toReturn stands for the index of a return's bytecode, as -1 stands for the entry.
const toReturn = -2

// through adds the legs of the innermost method, and of methods that are inlined into it, from the bytecode index from
// to the index to, or to a return. behind: the first bytecode is already done, such as a call from which the program
// returns. unresolved: the route may include invokes that the interpreter has not resolved.
func (r *router) through(chain []vmstructs.Scope, from int32, behind bool, to int32, unresolved bool) {
	m := chain[0].Method
	code := r.q.bytecodes(m)
	first := vmstructs.BytecodeAt(code, max(from, 0))
	if first < 0 {
		r.addLeg(chain, workUnread)
		return
	}
	work := 0
	enters := from <= 0 && !behind
	if r.q.blob.Level == levelProfiled && enters { // methods count their entries for C2
		work += workCount
	}
	if m.Synchronized && (enters || to == toReturn) {
		work += r.monitor
	}
	place := vmstructs.PlaceOf(chain)
	path, around, ok := r.shortest(m, place, first, behind, to)
	if !ok {
		r.lost = true
		r.addLeg(chain, work+workUnknown)
		return
	}
	if r.guess {
		r.notePassed(chain, code, path)
	}
	known := r.knownIn(chain)
	for n, i := range path {
		b := &code[i]
		if known != nothing && r.vanishes(known, chain[0].Method, b) {
			continue
		}
		r.note(chain, b, work)
		r.leave(chain, b)
		if !isInvoke(b.Op) || n == len(path)-1 && to != toReturn {
			work += r.weigh(b)
			continue
		}
		callee, byProfile := r.callee(chain, place, b, unresolved || around)
		if callee == nil {
			work += r.weigh(b) + r.longIntrinsic(chain[0].Method, b)
			continue
		}
		r.addLeg(chain, work)
		work = 0
		begin := len(r.legs)
		r.through(enter(chain, b, callee), -1, false, toReturn, unresolved || around)
		if r.inlinedAt(place.Site(b.BCI)) != 0 {
			share(r.legs[begin:], r.elsewhere)
		}
		for k := begin; byProfile && k < len(r.legs); k++ {
			r.legs[k].byProfile = true
		}
	}
	r.addLeg(chain, work)
}

// enter returns the methods at the beginning of callee, which is inlined at an invoke of the innermost method of chain.
func enter(chain []vmstructs.Scope, b *vmstructs.Bytecode, callee *vmstructs.Method) []vmstructs.Scope {
	inner := make([]vmstructs.Scope, len(chain)+1)
	inner[0] = vmstructs.Scope{Method: callee, BCI: 0, Line: callee.Line(0)}
	copy(inner[1:], chain)
	inner[1].BCI, inner[1].Line = b.BCI, chain[0].Method.Line(b.BCI)
	return inner
}

func isInvoke(op uint8) bool { return op >= vmstructs.OpInvoke && op <= vmstructs.OpInvokeLast }

// far is the cost of a bytecode that cannot be reached. workCalled is the cost of a call with a record: no such call is
// on the route, because it would be nearer evidence.
const far, workCalled = 1 << 30, 1 << 20

// shortest finds the path with the least work from the bytecode first to the index to. around: the path leads once
// around a loop.
func (r *router) shortest(m *vmstructs.Method, p vmstructs.Place, first int, behind bool, to int32) (path []int32,
	around, ok bool) {
	f := r.q.Finder
	code := f.bytecodes(m)
	if first >= len(code) { // the method could not be read, or has changed
		return nil, false, false
	}
	cost, before := f.costs[:0], f.before[:0]
	for range code {
		cost, before = append(cost, far), append(before, -1)
	}
	f.costs, f.before = cost, before
	cost[first] = 0
	best, last := far, -1
	round, roundLast := far, -1 // the cost of the way back to first, and the bytecode before it
	// The second pass is for paths that go back, and for a path that goes once around to its beginning.
	ends := to != toReturn && code[first].BCI == max(to, 0)
	back := behind && ends
	for pass := range 2 {
		if pass > 0 && !back {
			break
		}
		for i := range code {
			b := &code[i]
			c := cost[i]
			if c >= best && (!ends || c >= round) { // not reachable, or no better path leads through here
				continue
			}
			done := behind && i == first
			if to == toReturn && b.Returns() || to != toReturn && b.BCI == max(to, 0) && (!done || pass > 0) {
				if c+r.weigh(b) < best {
					best, last = c+r.weigh(b), i
				}
			}
			if !done {
				c += r.weigh(b)
				if isInvoke(b.Op) {
					c += r.detour(m, p, b)
				}
			}
			next := [2]int{-1, -1}
			if b.Target >= 0 {
				next[0] = vmstructs.BytecodeAt(code, b.Target)
			}
			if !b.Ends() && i+1 < len(code) {
				next[1] = i + 1
			}
			for _, n := range next {
				switch {
				case n < 0:
				case n == first:
					if c < round {
						round, roundLast = c, i
					}
				case c < cost[n]:
					cost[n], before[n] = c, int32(i)
					back = back || n <= i
				}
			}
		}
	}
	if last == first && to != toReturn && round < far {
		path = wayBack([]int32{int32(first)}, before, first, roundLast, behind)
		if r.calls != nil || r.fits(m, p, path) {
			return path, true, true
		}
	}
	if last < 0 {
		return nil, false, false
	}
	return wayBack(nil, before, first, last, behind), false, true
}

// fits reports whether the code has room for a path once around a loop. A path with an invoke that the interpreter has
// not resolved fits, because then there is no better path.
func (r *router) fits(m *vmstructs.Method, p vmstructs.Place, path []int32) bool {
	code := r.q.bytecodes(m)
	work := 0
	for _, i := range path {
		b := &code[i]
		if work += r.weigh(b); isInvoke(b.Op) && r.inlinedAt(p.Site(b.BCI)) == isCalled {
			work += workCalled
		}
	}
	return work <= maxRound*r.space
}

// wayBack returns the path from first to last. before has the predecessor of each bytecode. path has the bytecodes
// behind last.
func wayBack(path, before []int32, first, last int, behind bool) []int32 {
	for n := 0; last >= 0 && n <= len(before); n++ {
		if behind && last == first && len(path) > 0 {
			break
		}
		path = append(path, int32(last))
		last = int(before[last])
	}
	slices.Reverse(path)
	return path
}

// detour returns the cost of an invoke that cannot be on the path, because its call has a record or the program has
// never executed it.
func (r *router) detour(m *vmstructs.Method, p vmstructs.Place, b *vmstructs.Bytecode) int {
	switch r.inlinedAt(p.Site(b.BCI)) {
	case isCalled:
		return workCalled
	case 0:
		if r.q.isNeverInvoked(m, b) {
			return workCalled
		}
	}
	return 0
}

// invoked returns what an invoke calls, and keeps the result.
func (f *Finder) invoked(m *vmstructs.Method, b *vmstructs.Bytecode) vmstructs.Invocation {
	key := invokeSite{m, b.BCI}
	known, ok := f.callees[key]
	if !ok || !known.whole {
		known.Invocation, known.whole = f.vm.Invoked(m, b), true
		f.keepInvoke(key, known)
	}
	return known.Invocation
}

// isNeverInvoked reports whether the interpreter has not resolved an invoke, and keeps the result. For most invokes
// this is all that is needed, and finding the method takes ten times as long.
func (f *Finder) isNeverInvoked(m *vmstructs.Method, b *vmstructs.Bytecode) bool {
	key := invokeSite{m, b.BCI}
	known, ok := f.callees[key]
	if !ok {
		known.Never = f.vm.NeverInvoked(m, b)
		f.keepInvoke(key, known)
	}
	return known.Never
}

// received returns the method that an invoke has called most often, by its profile, and keeps the result.
func (f *Finder) received(m *vmstructs.Method, b *vmstructs.Bytecode) *vmstructs.Method {
	key := invokeSite{m, b.BCI}
	known := f.callees[key]
	if !known.profiled {
		known.received, known.profiled = f.vm.Received(m, b), true
		f.keepInvoke(key, known)
	}
	return known.received
}

func (f *Finder) keepInvoke(key invokeSite, known knownInvoke) {
	if len(f.callees) >= maxInvoked {
		f.callees = make(map[invokeSite]knownInvoke)
	}
	f.callees[key] = known
}

// knownInvoke is what is known of an invoke. whole: all of Invocation is known, not only Never. profiled: received is
// known. access is the method by which a VarHandle accesses memory at this invoke, and accessAsked is how often goprof
// has looked for it.
type knownInvoke struct {
	vmstructs.Invocation
	whole       bool
	received    *vmstructs.Method
	profiled    bool
	access      *vmstructs.Method
	accessAsked uint8
}

type invokeSite struct {
	method *vmstructs.Method
	bci    int32
}

const maxInvoked = 1 << 12

// maxBytecodes bounds the bytecodes of all methods together, of 12 bytes each.
const maxBytecodes = 1 << 19

// bytecodes returns a method's bytecodes, which it reads once.
func (f *Finder) bytecodes(m *vmstructs.Method) []vmstructs.Bytecode {
	code, ok := f.bytecode[m]
	if !ok {
		code, _ = f.vm.Bytecodes(m) // without bytecodes a leg has no length
		if f.bytecodeSize += len(code) + 1; f.bytecodeSize > maxBytecodes {
			f.bytecode, f.bytecodeSize = make(map[*vmstructs.Method][]vmstructs.Bytecode), len(code)
		}
		f.bytecode[m] = code
	}
	return code
}

// bytecodeOf returns the bytecode of a scope, nil if there is none.
func (f *Finder) bytecodeOf(s vmstructs.Scope) *vmstructs.Bytecode {
	code := f.bytecodes(s.Method)
	if i := vmstructs.BytecodeAt(code, s.BCI); i >= 0 {
		return &code[i]
	}
	return nil
}
