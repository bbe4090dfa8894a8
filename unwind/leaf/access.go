package leaf

import (
	"goprof/arch"
	"goprof/profile"
	"goprof/vmstructs"
)

// Compilers make one load instruction for a getfield, and one for the load of an array's element. So the form of a load
// shows from which bytecodes it can come: from those that read a field at its displacement, or, if an index register is
// added, from those that read an element. If only one bytecode on the route fits, the load belongs to it. If several
// fit, and the route leads through a single method, the load belongs to that method.
//
// The rule applies to short routes only: on a long route, goprof is more likely to have missed an inlined method. It
// does not apply to stores: C2 joins stores that fill a new object with the object's allocation, and nobody has
// measured how often the rule would be right there.

// maxAccessLegs bounds the legs of such a route, maxLikelyLegs those of a route on which the only such bytecode is more
// likely than the place where the route is otherwise.
const maxAccessLegs, maxLikelyLegs = 2, 7

// loadAt says which bytecodes can be the load of an object's memory at an instruction, nil if there is no such load.
func (q *question) loadAt(n int32) callsBytecode {
	if n < 0 || int(n) >= len(q.code.list) {
		return nil
	}
	i := q.code.list[n]
	switch {
	case !i.loads || i.base != arch.BaseOther || i.disp <= maxHeader:
		return nil
	case q.readsElement(&i):
		return loadsElement
	}
	return func(in *vmstructs.Method, b *vmstructs.Bytecode, _ *vmstructs.Method) bool {
		if i.disp == q.vm.ArrayLength() && asksForLength(b.Op) {
			return true
		}
		return b.Op == vmstructs.OpGetfield && q.mayReadAt(in, b, i.disp)
	}
}

// readsElement reports whether a load is that of an element: its index is no compressed reference.
func (f *Finder) readsElement(i *instruction) bool {
	return i.indexed && !(i.narrow && f.vm.ScalesReferences() && (!f.cpu.FreesHeapBase || f.vm.HeapHasBase()))
}

// mayReadAt reports whether a getfield may read the field at an offset. If the interpreter has not resolved it, it may.
func (f *Finder) mayReadAt(m *vmstructs.Method, b *vmstructs.Bytecode, offset int32) bool {
	key := invokeSite{m, b.BCI}
	at, known := f.fields[key]
	if !known {
		if at, known = f.vm.FieldOffset(m, b); !known {
			return true
		}
		if len(f.fields) >= maxInvoked {
			clear(f.fields)
		}
		f.fields[key] = at
	}
	return at == offset
}

func loadsElement(_ *vmstructs.Method, b *vmstructs.Bytecode, _ *vmstructs.Method) bool {
	return b.Op >= vmstructs.OpIaload && b.Op <= vmstructs.OpSaload
}

// asksForLength reports whether compilers load the length of an array for a bytecode.
func asksForLength(op uint8) bool {
	return op == vmstructs.OpArraylength || op >= vmstructs.OpIaload && op <= vmstructs.OpSaload ||
		op >= vmstructs.OpIastore && op <= vmstructs.OpSastore
}

// isLoad reports whether it is certain which method on the route has the load: only one bytecode can be it, or there is
// only one method.
func (r *router) isLoad() bool {
	switch {
	case r.load == nil || len(r.found) == 0 || r.lost:
		return false
	case len(r.found) == 1:
		return len(r.legs) <= maxAccessLegs && !r.mayBeField()
	}
	return len(r.legs) == 1
}

// mayBeField reports whether a load that looks like arraylength may as well read an object's first field. The only
// bytecode that was found asks for the length of an array, but the getfield may stand before the route. Example:
// AbstractStringBuilder.append reads its count, and the route begins in ensureCapacityInternal, which asks for
// value.length.
func (r *router) mayBeField() bool {
	s := r.found[0].scopes[0]
	code := r.q.bytecodes(s.Method)
	i := vmstructs.BytecodeAt(code, s.BCI)
	load := &r.q.code.list[r.at]
	return i >= 0 && code[i].Op != vmstructs.OpGetfield && load.disp == r.q.vm.ArrayLength() && !r.q.readsElement(load)
}

// load tells the methods at a load of which it is certain which bytecode, or which method on the route, has it.
func (p *place) load() verdict {
	if p.loadAt(p.n) != nil && p.route().byLoad {
		return verdict{p.route().scopes, profile.Certain}
	}
	return verdict{}
}

// loadsForVM reports whether C2 makes loads of a bytecode that read what is the VM's: a static field, a class's list of
// those above it, a table of methods.
func loadsForVM(b *vmstructs.Bytecode) bool {
	switch b.Op {
	case vmstructs.OpGetstatic, vmstructs.OpCheckcast, vmstructs.OpInstanceof, vmstructs.OpInvoke,
		vmstructs.OpInvokeInterface:
		return true
	}
	return false
}

// mayLoad reports whether C2 may have made a load for a place. It may make one for an intrinsic method, too, for an
// element whose index is a constant, or for the VM: the rule does not think of these, so the judge of the rule must.
func (p *place) mayLoad(s vmstructs.Scope) bool {
	b, load := p.bytecodeOf(s), p.loadAt(p.n)
	return b != nil && (load(s.Method, b, nil) || loadsElement(nil, b, nil) || loadsForVM(b) ||
		p.intrinsicAt(s.Method, b) != nil)
}
