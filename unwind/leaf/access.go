package leaf

import (
	"goprof/arch"
	"goprof/profile"
	"goprof/vmstructs"
)

// Compilers make one load instruction for a getfield, and one for the load of an array's element. A load with an index
// register reads an element. Any other load reads a field at its displacement. If only one bytecode on the route fits,
// the load belongs to that bytecode. If several fit and all of the route is in one method, the load belongs to that
// method.
//
// The rule applies to short routes only: on a long route, it is more likely that goprof has missed an inlined method.
// The rule does not apply to stores: C2 joins stores that fill a new object with the object's allocation.

// maxAccessLegs bounds the legs of a route on which the only fitting bytecode is certain. maxLikelyLegs bounds the legs
// of one on which it is at least likely.
const maxAccessLegs, maxLikelyLegs = 2, 7

// loadAt returns a test for the bytecodes from which an instruction's load may come, nil if the instruction loads from
// no object.
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
		if i.disp == q.vm.ArrayLength() && loadsLength(b.Op) {
			return true
		}
		return b.Op == vmstructs.OpGetfield && q.mayReadAt(in, b, i.disp)
	}
}

// readsElement reports whether a load reads an element: it has an index, and the index is no compressed reference.
func (f *Finder) readsElement(i *instruction) bool {
	return i.indexed && !(i.narrow && f.vm.ScalesReferences() && (!f.cpu.FreesHeapBase || f.vm.HeapHasBase()))
}

// mayReadAt reports whether a getfield may read the field at an offset. If the interpreter has not resolved the
// getfield, it may.
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

// loadsLength reports whether compilers load the length of an array for a bytecode with this opcode.
func loadsLength(op uint8) bool {
	return op == vmstructs.OpArraylength || op >= vmstructs.OpIaload && op <= vmstructs.OpSaload ||
		op >= vmstructs.OpIastore && op <= vmstructs.OpSastore
}

// isLoad reports whether the method that has the load is certain, because only one bytecode fits or the route has only
// one method.
func (r *router) isLoad() bool {
	switch {
	case r.load == nil || len(r.found) == 0 || r.lost:
		return false
	case len(r.found) == 1:
		return len(r.legs) <= maxAccessLegs && !r.mayBeField()
	}
	return len(r.legs) == 1
}

// mayBeField reports whether a load that looks like arraylength may also read an object's first field, by a getfield
// before the route. Example: AbstractStringBuilder.append reads its count, and the route begins in
// ensureCapacityInternal, which reads value.length.
func (r *router) mayBeField() bool {
	s := r.found[0].scopes[0]
	code := r.q.bytecodes(s.Method)
	i := vmstructs.BytecodeAt(code, s.BCI)
	load := &r.q.code.list[r.at]
	return i >= 0 && code[i].Op != vmstructs.OpGetfield && load.disp == r.q.vm.ArrayLength() && !r.q.readsElement(load)
}

// load returns the methods at a load whose method is certain (isLoad).
func (p *place) load() verdict {
	if p.loadAt(p.n) != nil && p.route().byLoad {
		return verdict{p.route().scopes, profile.Certain}
	}
	return verdict{}
}

// loadsForVM reports whether C2 makes loads for a bytecode that read the VM's own data: a static field, a class's list
// of superclasses, a table of methods.
func loadsForVM(b *vmstructs.Bytecode) bool {
	switch b.Op {
	case vmstructs.OpGetstatic, vmstructs.OpCheckcast, vmstructs.OpInstanceof, vmstructs.OpInvoke,
		vmstructs.OpInvokeInterface:
		return true
	}
	return false
}

// mayLoad reports whether C2 may have made a load for a scope's bytecode. Beyond what the rule knows, C2 makes loads
// for intrinsic methods, for elements whose index is a constant, and for the VM.
func (p *place) mayLoad(s vmstructs.Scope) bool {
	b, load := p.bytecodeOf(s), p.loadAt(p.n)
	return b != nil && (load(s.Method, b, nil) || loadsElement(nil, b, nil) || loadsForVM(b) ||
		p.intrinsicAt(s.Method, b) != nil)
}
