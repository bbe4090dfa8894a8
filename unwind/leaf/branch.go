package leaf

import (
	"slices"

	"goprof/arch"
	"goprof/profile"
	"goprof/vmstructs"
)

// This rule finds the bytecode of a branch in machine code. Two paths through the code begin at the branch. Evidence
// before the branch, and ahead on each path, shows the methods there. So there are two routes through bytecodes, with
// the same beginning. The last bytecode that both routes share is the branch's, if it is an ifeq, an if_icmplt and so
// on (parse2.cpp, do_if, makes one comparison and one branch of each). The code must agree with the bytecode in three
// points: what is compared (numbers, references, constants), by which relation, and when the branch is taken.
//
// C2 also makes branches for intrinsic methods, for casts, and to guard a call. Then the last common bytecode does not
// branch, or the code does not agree with it.

// trailed is a bytecode on a route, at bci in the innermost method of a chain of inlined methods.
type trailed struct {
	chain []vmstructs.Scope
	bci   int32
}

// maxTrail bounds the bytecodes of a route that are compared with another route.
const maxTrail = 1024

// branching is what is known of the bytecode of a branch.
type branching struct {
	asked  bool
	scopes []vmstructs.Scope // nil: not known
	// parts: the two routes part at the bytecode. Otherwise it is the only branch on both routes with which the code
	// agrees, or one of several such branches of one method.
	parts bool
	meets bool // the two paths meet before any evidence, so there is only one route
}

// branch returns the methods at a comparison or at the branch behind it, if the two routes part at a bytecode.
func (p *place) branch() verdict {
	if at := p.fork(); at.parts {
		return verdict{at.scopes, profile.Certain}
	}
	return verdict{}
}

// branchOfOne returns the methods of the only bytecodes that agree with the branch. If the route leads to the same
// methods, they are certain.
func (p *place) branchOfOne() verdict {
	at := p.fork()
	sure := profile.Likely
	if at.scopes != nil && at.meets && sameMethods(at.scopes, p.route().scopes) {
		sure = profile.Certain
	}
	return verdict{at.scopes, sure}
}

// branchingAt finds the bytecode of a comparison, or of the branch behind it.
func (q *question) branchingAt(n int32) (at branching) {
	compare, branch := q.code.comparisonAndBranch(n)
	if branch == notInCode {
		return at
	}
	at = q.partingOf(compare, branch)
	if at.parts && q.partedBefore(compare, at.scopes) {
		return branching{}
	}
	return at
}

// partedBefore reports whether the branch before this comparison was found to belong to the same bytecode. Then the
// bytecode of this branch is not known: routes are the shortest ones, and may skip bytecodes.
func (q *question) partedBefore(compare int32, scopes []vmstructs.Scope) bool {
	m := q.code
	n := compare
	for range maxSameBranch {
		if n = m.before(n); n == notInCode || q.evidenceAt(n).kind != noEvidence {
			return false
		}
		switch m.list[n].flow {
		case arch.FlowNext:
			continue
		case arch.FlowBranch:
			compare, branch := m.comparisonAndBranch(n)
			if branch != n {
				return false
			}
			at := q.partingOf(compare, branch)
			return at.parts && at.scopes[0].BCI == scopes[0].BCI && sameMethods(at.scopes, scopes)
		}
		return false
	}
	return false
}

// maxSameBranch bounds the instructions between two branches of one bytecode.
const maxSameBranch = 12

// partingOf finds the bytecode of a comparison and of the branch behind it.
func (q *question) partingOf(compare, branch int32) (at branching) {
	m := q.code
	is, ok := m.cpu.Condition(m.code, m.list[compare].at, m.list[branch].at)
	if !ok || q.evidenceAt(branch).kind != noEvidence {
		return at
	}
	behind := q.nearest(compare, true)
	from := q.methodsOf(behind)
	taken, next := q.nearest(m.target(branch), false), q.nearest(m.next(branch), false)
	toTaken, toNext := q.methodsAhead(taken), q.methodsAhead(next)
	if from == nil || toTaken == nil || toNext == nil {
		return at
	}
	if behind.kind == atPiece {
		from = q.behindPiece(from)
	}
	r := router{q: q}
	q.trails[0] = r.trailOf(q.trails[0], from, toTaken, behind.far+taken.far+1)
	if at.meets = taken.scope == next.scope && taken.kind == next.kind && taken.piece == next.piece; at.meets {
		q.trails[1] = q.trails[1][:0]
	} else {
		q.trails[1] = r.trailOf(q.trails[1], from, toNext, behind.far+next.far+1)
		at.scopes = q.parting(q.trails[0], q.trails[1], is)
		at.parts = at.scopes != nil
	}
	if !at.parts && q.blob.Level == levelC2 {
		at.scopes, at.meets = q.onlyBranch(is, at.meets)
	}
	return at
}

// onlyBranch searches both trails for bytecodes for which C2 may have made this condition. It returns their methods, or
// nil if they are of several methods. It also returns nil if a caller branches on the boolean of an inlined method,
// because C2 makes one branch of both. If an intrinsic method is on a trail, C2 may have made branches for it, and
// meets becomes false.
func (q *question) onlyBranch(is arch.Condition, meets bool) ([]vmstructs.Scope, bool) {
	var only *trailed
	not := is
	not.Is = is.Is.Not()
	for _, trail := range q.trails {
		for k := range trail {
			at := &trail[k]
			code := q.bytecodes(at.chain[0].Method)
			i := vmstructs.BytecodeAt(code, at.bci)
			if i < 1 || !code[i].Branches() || !branchesOn(code, i, is) && !branchesOn(code, i, not) {
				continue
			}
			if only != nil && !only.sameChain(at) || q.callerBranches(at.chain) {
				return nil, false
			}
			if only == nil {
				only = at
			}
		}
	}
	if only == nil {
		return nil, false
	}
	return only.scopes(), meets && !q.trailsIntrinsic()
}

func (q *question) trailsIntrinsic() bool {
	for _, trail := range q.trails {
		for k := range trail {
			m := trail[k].chain[0].Method
			code := q.bytecodes(m)
			if i := vmstructs.BytecodeAt(code, trail[k].bci); i >= 0 && q.intrinsicAt(m, &code[i]) != nil {
				return true
			}
		}
	}
	return false
}

// callerBranches reports whether the caller of the innermost method branches on that method's result.
func (f *Finder) callerBranches(chain []vmstructs.Scope) bool {
	if len(chain) < 2 {
		return false
	}
	code := f.bytecodes(chain[1].Method)
	i := vmstructs.BytecodeAt(code, chain[1].BCI)
	return i >= 0 && i+1 < len(code) && code[i+1].Op >= vmstructs.OpIfeq && code[i+1].Op <= vmstructs.OpIfle
}

func (t *trailed) scopes() []vmstructs.Scope {
	scopes := slices.Clone(t.chain)
	scopes[0].BCI, scopes[0].Line = t.bci, t.chain[0].Method.Line(t.bci)
	return scopes
}

// comparisonAndBranch returns the places of a comparison and of the branch behind it, if instruction n is one of them.
// The two are the same if the branch itself compares.
func (m *codeMap) comparisonAndBranch(n int32) (compare, branch int32) {
	compare, branch = n, n
	switch before := m.before(n); {
	case m.list[n].kindOf == arch.KindCompare:
		branch = m.next(n)
	case before != notInCode && m.list[before].kindOf == arch.KindCompare:
		compare = before
	}
	if branch == notInCode || m.list[branch].flow != arch.FlowBranch || m.target(branch) == notInCode {
		return notInCode, notInCode
	}
	return compare, branch
}

// methodsAhead returns the scopes at the end of a route that leads to evidence.
func (q *question) methodsAhead(e evidence) []vmstructs.Scope {
	if e.kind == atReturn {
		return []vmstructs.Scope{{Method: q.blob.Method, BCI: toReturn}}
	}
	return q.methodsOf(e)
}

// trailOf returns the bytecodes of a route. It writes into memory.
func (r *router) trailOf(memory []trailed, from, to []vmstructs.Scope, space int) []trailed {
	r.trail = memory[:0]
	r.asked, r.trails = 0, true
	r.between(from, to, space, 0)
	return r.trail
}

func (r *router) leave(chain []vmstructs.Scope, b *vmstructs.Bytecode) {
	if r.trails && len(r.trail) < maxTrail {
		r.trail = append(r.trail, trailed{chain, b.BCI})
	}
}

// parting returns the methods at the bytecode where two routes part, nil if C2 cannot have made the condition for this
// bytecode. The first route is that of the branch's target.
func (f *Finder) parting(taken, next []trailed, is arch.Condition) []vmstructs.Scope {
	k := 0
	for k < len(taken) && k < len(next) && taken[k].same(&next[k]) {
		k++
	}
	if k == 0 || k == len(taken) || k == len(next) {
		return nil
	}
	at := taken[k-1]
	code := f.bytecodes(at.chain[0].Method)
	i := vmstructs.BytecodeAt(code, at.bci)
	if i < 1 || i+1 >= len(code) || !at.sameChain(&taken[k]) || !at.sameChain(&next[k]) {
		return nil
	}
	b, one, other := &code[i], taken[k].bci, next[k].bci
	switch {
	case one == b.Target && other == code[i+1].BCI:
	case other == b.Target && one == code[i+1].BCI:
		is.Is = is.Is.Not()
	default:
		return nil
	}
	if !branchesOn(code, i, is) {
		return nil
	}
	return at.scopes()
}

func (t *trailed) same(o *trailed) bool { return t.bci == o.bci && t.sameChain(o) }

// sameChain reports whether two bytecodes belong to the same inlined method.
func (t *trailed) sameChain(o *trailed) bool {
	return &t.chain[0] == &o.chain[0] && len(t.chain) == len(o.chain) || sameMethods(t.chain, o.chain)
}

// branchesOn reports whether the bytecode at an index branches to its target under the condition is. The bytecode
// before the branch pushes the second operand, and shows whether it is a constant. If that bytecode is an invoke,
// branchesOn returns false: C2 may have merged a branch in a method that returns a boolean with one in its caller.
func branchesOn(code []vmstructs.Bytecode, i int, is arch.Condition) bool {
	op, before := code[i].Op, code[i-1].Op
	if isInvoke(before) || is.InMemory && is.Constant {
		return false
	}
	zero := is.Constant && is.Value == 0
	switch {
	case op == vmstructs.OpIfnull || op == vmstructs.OpIfnonnull:
		return zero && is.Is == relationOf(op-vmstructs.OpIfnull)
	case op == vmstructs.OpIfacmpeq || op == vmstructs.OpIfacmpne:
		return !is.Constant && is.Is == relationOf(op-vmstructs.OpIfacmpeq)
	case op >= vmstructs.OpIficmpeq && op <= vmstructs.OpIficmple:
		return !is.Wide && branchesOnTwo(&code[i-1], relationOf(op-vmstructs.OpIficmpeq), is)
	case op < vmstructs.OpIfeq || op > vmstructs.OpIfle:
		return false
	case before == vmstructs.OpLcmp && i > 1:
		return is.Wide && branchesOnTwo(&code[i-2], relationOf(op-vmstructs.OpIfeq), is)
	case before > vmstructs.OpLcmp && before <= vmstructs.OpDcmpg:
		return false // a comparison of doubles
	}
	return zero && !is.Wide && is.Is == relationOf(op-vmstructs.OpIfeq)
}

// branchesOnTwo is branchesOn for a comparison of two numbers. The bytecode second pushes the second number. If neither
// is a constant, either number may be the first in the code.
func branchesOnTwo(second *vmstructs.Bytecode, want arch.Relation, is arch.Condition) bool {
	value, constant := second.Constant()
	switch {
	case second.Op >= vmstructs.OpLdc && second.Op <= vmstructs.OpLdc2W:
		return false // a constant of the pool, whose value is not known
	case constant:
		return is.Constant && is.Value == value && is.Is == want
	}
	return !is.Constant && (is.Is == want || is.Is.Swapped() == want)
}

// relationOf returns the relation of a branch's opcode, in the order of the opcodes: eq, ne, lt, ge, gt, le.
func relationOf(n uint8) arch.Relation { return arch.Relation(n) }

// testsOrder reports whether a comparison and its branch test which of two signed numbers is less.
func (m *codeMap) testsOrder(n int32) bool {
	compare, branch := m.comparisonAndBranch(n)
	if branch == notInCode {
		return false
	}
	is, ok := m.cpu.Condition(m.code, m.list[compare].at, m.list[branch].at)
	return ok && is.Is >= arch.Less
}

func (p *place) mayBranch(s vmstructs.Scope) bool { return p.mayBeBranch(s, p.code.testsOrder(p.n)) }

// mayBeBranch reports whether C2 can have made a comparison and a branch for a scope's bytecode. order: the code
// compares signed numbers. Checks test whether two values are equal, or compare unsigned numbers. Only branches,
// comparisons, switches and intrinsic methods compare signed numbers.
func (f *Finder) mayBeBranch(s vmstructs.Scope, order bool) bool {
	b := f.bytecodeOf(s)
	if b == nil || b.Branches() || b.Op >= vmstructs.OpLcmp && b.Op <= vmstructs.OpDcmpg {
		return true
	}
	return f.intrinsicAt(s.Method, b) != nil || !order && mayTrap(s.Method, b)
}
