package leaf

import (
	"slices"
	"strings"

	"goprof/profile"
	"goprof/vmstructs"
)

// Compiled code calls some of HotSpot's own code as C code does: stubs for intrinsic methods, copies of arrays,
// barriers of the collectors, and the barrier at a method's entry. No collection can begin there, so the call has no
// record (opto/callnode.hpp, CallLeafNode; c1/c1_LIRGenerator.cpp, call_runtime), and the next record by address
// belongs to another call. The called code shows which bytecode has made the call: an invoke of an intrinsic method on
// the route, or a store or a load that has a barrier.

// intrinsicAt returns the intrinsic method that an invoke calls, nil if it calls none.
func (f *Finder) intrinsicAt(m *vmstructs.Method, b *vmstructs.Bytecode) *vmstructs.Method {
	if isInvoke(b.Op) {
		if c := f.invoked(m, b); c.Intrinsic {
			return c.Method
		}
	}
	return nil
}

// callsBytecode reports whether compiled code may call a certain code of HotSpot's for a bytecode of a method.
// intrinsic is the intrinsic method that the bytecode invokes, nil if there is none.
type callsBytecode func(in *vmstructs.Method, b *vmstructs.Bytecode, intrinsic *vmstructs.Method) bool

func bytecodesOf(name string) callsBytecode {
	switch name {
	case swap:
		return swaps
	case storeBarrier:
		return marksCard
	}
	name = letters(name)
	has := func(parts ...string) bool {
		for _, p := range parts {
			if strings.Contains(name, p) {
				return true
			}
		}
		return false
	}
	switch {
	case has("intdivision"):
		return divides(vmstructs.OpIdiv)
	case has("longdivision"):
		return divides(vmstructs.OpIdiv + 1)
	case has("stringcompare"):
		return func(_ *vmstructs.Method, _ *vmstructs.Bytecode, m *vmstructs.Method) bool {
			return m != nil && strings.HasPrefix(m.Name, "compareTo")
		}
	case has("subtypecheck"):
		return func(_ *vmstructs.Method, b *vmstructs.Bytecode, _ *vmstructs.Method) bool {
			return b.Op == vmstructs.OpCheckcast || b.Op == vmstructs.OpInstanceof || b.Op == vmstructs.OpAastore
		}
	case has("loadbarrier", "loadref"): // barriers of ZGC and Shenandoah
		return func(_ *vmstructs.Method, b *vmstructs.Bytecode, _ *vmstructs.Method) bool {
			return b.Op == vmstructs.OpGetfield || b.Op == vmstructs.OpGetstatic || b.Op == vmstructs.OpAaload
		}
	case has("barrier", "writeref", "prewrite", "postwrite"):
		return func(_ *vmstructs.Method, b *vmstructs.Bytecode, _ *vmstructs.Method) bool {
			return b.Op == vmstructs.OpPutfield || b.Op == vmstructs.OpPutstatic || b.Op == vmstructs.OpAastore
		}
	case has("drem", "frem"):
		return func(_ *vmstructs.Method, b *vmstructs.Bytecode, _ *vmstructs.Method) bool {
			return b.Op == vmstructs.OpFrem || b.Op == vmstructs.OpDrem
		}
	case has("arraycopy"):
		return func(_ *vmstructs.Method, _ *vmstructs.Bytecode, m *vmstructs.Method) bool {
			return m != nil && copiesArrays[m.Name]
		}
	}
	return func(_ *vmstructs.Method, _ *vmstructs.Bytecode, m *vmstructs.Method) bool {
		return m != nil && alike(name, letters(m.Name))
	}
}

// divides is the callsBytecode of the division and remainder of one type of numbers.
func divides(op uint8) callsBytecode {
	return func(_ *vmstructs.Method, b *vmstructs.Bytecode, _ *vmstructs.Method) bool {
		return b.Op == op || b.Op == op+(vmstructs.OpLrem-vmstructs.OpIdiv-1)
	}
}

// copiesArrays are the intrinsic methods that a stub for copies may stand for (opto/library_call.cpp).
var copiesArrays = map[string]bool{"arraycopy": true, "copyOf": true, "copyOfRange": true, "clone": true,
	"copyMemory0": true, "copyMemory": true, "getChars": true, "getCharsSB": true, "toBytes": true}

// letters returns the letters of a name in lower case, without the marks that the JDK gives to names of intrinsic
// methods.
func letters(name string) string {
	name = strings.Map(func(r rune) rune {
		switch {
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		case r >= 'a' && r <= 'z':
			return r
		}
		return -1
	}, name)
	return strings.TrimSuffix(strings.TrimPrefix(name, "impl"), "impl")
}

// minAlike is how many letters in a row two names must have in common: sha256_implCompressMB stands for
// implCompressMultiBlock0.
const minAlike = 6

// alike reports whether a stub's name is similar to that of an intrinsic method.
func alike(stub, method string) bool {
	if method == "" {
		return false
	}
	if strings.Contains(stub, method) {
		return true
	}
	for i := 0; i+minAlike <= len(method); i++ {
		if strings.Contains(stub, method[i:i+minAlike]) {
			return true
		}
	}
	return false
}

// nearestCall returns the call that is nearest to the fraction at/of of the route's work.
func nearestCall(found []foundCall, at, of int) []vmstructs.Scope {
	best, least := 0, -1
	for i, f := range found {
		away := max(at-f.before*of, f.before*of-at)
		if least < 0 || away < least {
			best, least = i, away
		}
	}
	return found[best].scopes
}

// note adds a bytecode of chain's innermost method to found, if it may have called the code in which the thread is.
// work is the leg's work before it.
func (r *router) note(chain []vmstructs.Scope, b *vmstructs.Bytecode, work int) {
	fits := r.calls
	if fits == nil {
		fits = r.load
	}
	if fits == nil || len(r.found) >= maxLegs {
		return
	}
	var intrinsic *vmstructs.Method
	if r.calls != nil { // a load is never an intrinsic method's, and finding the method takes long
		intrinsic = r.q.intrinsicAt(chain[0].Method, b)
	}
	if !fits(chain[0].Method, b, intrinsic) {
		return
	}
	for _, l := range r.legs {
		work += l.work
	}
	scopes := slices.Clone(chain)
	scopes[0].BCI, scopes[0].Line = b.BCI, chain[0].Method.Line(b.BCI)
	r.found = append(r.found, foundCall{scopes, work})
}

func (r *router) sureOfCall() profile.Certainty {
	switch {
	case len(r.found) == 0:
		return profile.Guessed
	case !r.offWay && r.ofOneMethod():
		return profile.Certain
	}
	return profile.Likely
}

// ofOneMethod reports whether all bytecodes in found belong to the same inlined method.
func (r *router) ofOneMethod() bool {
	for i := range r.found {
		if !sameMethods(r.found[i].scopes, r.found[0].scopes) {
			return false
		}
	}
	return len(r.found) > 0
}

// anywhere searches off the path for bytecodes that may have made the call: in the methods of both places, from the
// innermost common method outward, and in the methods that are inlined there.
func (r *router) anywhere(from, to []vmstructs.Scope) {
	r.offWay = true
	f, t := len(from), len(to)
	for f > 0 && t > 0 && from[f-1].Method == to[t-1].Method && (f == len(from) || from[f] == to[t]) {
		f, t = f-1, t-1
	}
	for ; f < len(from) && len(r.found) == 0; f++ {
		r.legs = r.legs[:0]
		r.noteCalls(from[f:], from[f].BCI)
	}
}

// noteCalls notes bytecodes in chain's innermost method, and in the methods that are inlined there. Bytecodes behind an
// index count as nearer.
func (r *router) noteCalls(chain []vmstructs.Scope, behind int32) {
	code := r.q.bytecodes(chain[0].Method)
	place := vmstructs.PlaceOf(chain)
	for i := range code {
		b := &code[i]
		away := int(b.BCI - behind)
		if away < 0 {
			away += len(code) * maxWay
		}
		r.note(chain, b, away)
		if !isInvoke(b.Op) {
			continue
		}
		if callee, _ := r.callee(chain, place, b, false); callee != nil {
			r.noteCalls(enter(chain, b, callee), -1)
		}
	}
}
