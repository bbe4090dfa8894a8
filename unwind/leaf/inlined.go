package leaf

import (
	"slices"
	"strings"

	"goprof/vmstructs"
)

// inlining is an nmethod's tree of inlined methods, from its records. For each site it has the address of the method
// that is inlined there. It has isCalled if a method is called there, and 0 if no record has the site.
type inlining = *vmstructs.SiteTable

// isCalled stands for a method that is called, not inlined.
const isCalled = 1

// maxCalls bounds the records of an nmethod that may be records of calls.
const maxCalls = 1 << 14

// inlinings returns b's tree, which it reads at the first call. inlinedAt adds the sites of calls later.
func (q *question) inlinings() inlining {
	m, b := q.code, q.blob
	if m.tree != nil {
		return m.tree
	}
	m.calls = vmstructs.NewSiteIndex(min(b.NumRecords(), maxCalls))
	m.tree = q.vm.Inlinings(b, func(pc uint64, s vmstructs.Site) { m.calls.Add(s, uint32(pc-b.Begin)) })
	return m.tree
}

// inlinedAt returns the address of the method that is inlined at a site, isCalled if one is called there, or 0. It
// reads the calls of a site only when a route reaches the site: reading takes long, and few sites are on a route.
func (r *router) inlinedAt(s vmstructs.Site) uint64 {
	m := r.q.code
	tree := r.q.inlinings()
	method, known := tree.Get(s)
	if known || m == nil {
		return method
	}
	any := false
	m.calls.Each(s, func(at uint32) bool {
		any = true
		if r.q.recordedCallee(r.q.blob.Begin+uint64(at)) == callsJava {
			method = isCalled
		}
		return method == 0
	})
	if !any {
		if m.calls.Len() == maxCalls {
			return isCalled // it may be one of the calls that were left out
		}
		return 0
	}
	tree.Set(s, method)
	return method
}

// maxLooked bounds the calls of an nmethod whose targets are read. maxTargets bounds the targets that are kept.
const (
	maxLooked  = 256
	maxTargets = 1 << 13
)

// recordedCallee returns what kind of code a call leads to. pc is the call's return address, and has a record.
//
// Only a call of Java leads to the method that the bytecode invokes. A call of an uncommon trap leads to the
// interpreter, and a call of the VM to a slow path. After maxLooked calls, recordedCallee takes each further call for
// one of Java. This is safe: a called method is not inlined, so goprof invents no method.
func (q *question) recordedCallee(pc uint64) calledCode {
	to, ok := q.recordedTarget(pc)
	if !ok {
		return callsVM
	}
	called, ok := q.targets[to]
	if ok {
		return called
	}
	if q.code.looked++; q.code.looked > maxLooked {
		return callsJava
	}
	kind, name, err := q.vm.KindAt(to)
	switch {
	case err != nil || kind == vmstructs.RuntimeStub && !resolvesCall(kind, name):
		called = callsVM
	case kind == vmstructs.UncommonTrap:
		called = callsTrap
	default:
		called = callsJava
	}
	if len(q.targets) >= maxTargets {
		clear(q.targets)
	}
	q.targets[to] = called
	return called
}

// recordedTarget returns the target of the call of a record, false if the call is not direct.
func (q *question) recordedTarget(pc uint64) (to uint64, ok bool) {
	end, n := pc-q.blob.Begin, uint64(q.cpu.MaxCall)
	if end > uint64(len(q.code.code)) || end < n {
		return 0, false
	}
	return q.cpu.CallTarget(q.code.code[end-n:end], pc)
}

type calledCode uint8

const (
	callsJava calledCode = iota // or what counts as Java code
	callsVM
	callsTrap // the uncommon trap, behind which the interpreter goes on
)

// resolvesCall reports whether a stub resolves the Java method of a call, for the first time or again
// (runtime/sharedRuntime.cpp: generate_stubs).
func resolvesCall(kind vmstructs.BlobKind, name string) bool {
	return kind == vmstructs.RuntimeStub && slices.ContainsFunc([]string{"resolve_", "ic_miss", "wrong_method"},
		func(part string) bool { return strings.Contains(name, part) })
}

const (
	maxCallees = 32
	// These bound the bytes of a method that C2 inlines if it is called often (FreqInlineSize), and of one that C1
	// inlines (C1MaxInlineSize).
	maxInlinedC2, maxInlinedC1 = 325, 35
	// maxInlineLevel is how deep compilers inline (MaxInlineLevel, C1MaxInlineLevel).
	maxInlineLevel = 15
)

// callee returns the method that is inlined at an invoke of chain's innermost method, nil if not known. unresolved:
// also for invokes that the interpreter has not resolved. byProfile: the method is a guess, since the invoke may call
// others.
func (r *router) callee(chain []vmstructs.Scope, p vmstructs.Place, b *vmstructs.Bytecode,
	unresolved bool) (m *vmstructs.Method, byProfile bool) {
	if len(chain) > maxInlineLevel || r.asked >= maxCallees {
		return nil, false
	}
	r.asked++
	addr := r.inlinedAt(p.Site(b.BCI))
	switch {
	case addr == isCalled:
		return nil, false
	case addr != 0:
		m, _ := r.q.vm.InlinedMethod(r.q.blob, addr) // it may be readable later
		return m, false
	}
	c := r.q.invoked(chain[0].Method, b)
	if c.Access {
		c = r.q.accessed(chain, c)
	}
	if c.Intrinsic || c.Never && !unresolved {
		return nil, false
	}
	if m = c.Method; r.guess && (m == nil || m.CodeSize == 0 && !m.Native) {
		m, byProfile = r.q.received(chain[0].Method, b), true
	}
	if m == nil || !r.mayInline(chain, m, c.Forced && !byProfile) {
		return nil, false
	}
	return m, byProfile
}

// mayInline reports whether a compiler may inline a method into the innermost method of chain. forced: whatever its
// size.
func (r *router) mayInline(chain []vmstructs.Scope, m *vmstructs.Method, forced bool) bool {
	most := maxInlinedC2
	switch {
	case forced:
		most = m.CodeSize
	case r.q.blob.Level < levelC2:
		most = maxInlinedC1
	}
	if m.Native || m.CodeSize == 0 || m.CodeSize > most {
		return false
	}
	for _, s := range chain {
		if s.Method == m {
			return false // a recursive call is not inlined
		}
	}
	return true
}

// alone reports whether nothing is inlined into the code, by its records and by the invokes of its only method.
func (r *router) alone() bool {
	m := r.q.code
	if !m.aloneKnown {
		m.aloneKnown, m.alone = true, r.inlinesNothing()
	}
	return m.alone
}

// inlinesNothing reports whether the nmethod has no inlined method at all.
func (r *router) inlinesNothing() bool {
	any := false
	r.q.inlinings().Values(func(method uint64) bool {
		any = method != isCalled && method != 0
		return !any
	})
	if any {
		return false
	}
	own := r.q.blob.OwnScope()
	place := vmstructs.PlaceOf(own)
	code := r.q.bytecodes(own[0].Method)
	ways := r.ways(own[0].Method, place)
	r.asked = 0
	for i := range code {
		if !isInvoke(code[i].Op) {
			continue
		}
		if r.asked >= maxCallees {
			return false
		}
		if callee, _ := r.callee(own, place, &code[i], slices.Contains(ways, int32(i))); callee != nil {
			return false
		}
		if r.q.invoked(own[0].Method, &code[i]).HandsOn && r.inlinedAt(place.Site(code[i].BCI)) == 0 {
			return false // not known to what
		}
	}
	return len(code) > 0
}

// ways returns the bytecodes on the paths with the least work through a method and around its loops. A path includes an
// invoke that the interpreter has not resolved only if there is no other path.
func (r *router) ways(m *vmstructs.Method, p vmstructs.Place) (on []int32) {
	r.weights = weightsOf(r.q.blob.Level)
	on, _, _ = r.shortest(m, p, 0, false, toReturn)
	code := r.q.bytecodes(m)
	for i := range code {
		if b := &code[i]; b.Target >= 0 && b.Target <= b.BCI {
			if begin := vmstructs.BytecodeAt(code, b.Target); begin >= 0 {
				around, _, _ := r.shortest(m, p, begin, false, b.BCI)
				on = append(on, around...)
			}
		}
	}
	return on
}

// longWork is the work of a long intrinsic: thirty instructions. x86's string_compare has eighty. But with eighty,
// bytecodes beside the intrinsic would get too few samples. In offline scores, javac, streams and others were right in
// 69.8 % with thirty and in 68.6 % with eighty. Programs that only call intrinsics were right in 76.6 % and 77.8 %. The
// former matter more.
const longWork = 1920

// longIntrinsic returns the work of an invoke that C2 replaces by a loop of its own, 0 for other invokes.
func (r *router) longIntrinsic(m *vmstructs.Method, b *vmstructs.Bytecode) int {
	if r.q.blob.Level != levelC2 {
		return 0
	}
	if c := r.q.invoked(m, b); c.Intrinsic && longIntrinsics[c.Method.Name] {
		return longWork
	}
	return 0
}

// longIntrinsics are the names of the methods whose calls C2 replaces by loops (opto/intrinsicnode.hpp, cpu/x86/x86.ad:
// string_compare and others).
var longIntrinsics = map[string]bool{"compareTo": true, "compareToUTF16": true, "compareToLatin1": true, "equals": true,
	"indexOf": true, "indexOfUL": true, "indexOfChar": true, "hasNegatives": true, "countPositives": true,
	"vectorizedHashCode": true, "inflate": true, "compress": true, "encodeISOArray": true, "implEncodeISOArray": true,
	"implEncodeAsciiArray": true}
