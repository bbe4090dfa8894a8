package leaf

import (
	"slices"
	"strings"

	"goprof/arch"
	"goprof/vmstructs"
)

// C2 makes an object in the thread's own buffer (opto/macro.cpp, expand_allocate_common). The code loads the buffer's
// first free address, compares it with the buffer's end, branches to the slow path if there is no room, stores the new
// first free address, and prefetches memory for the next objects.
//
// The branch is evidence of the methods. The load belongs to the next such branch in the code. The store and the
// prefetches belong to the last such branch before them. Other code between the store and the next load belongs to
// neither.

// maxAllocation bounds the instructions from an allocation's first load to its branch, and from there to its end.
const maxAllocation = 12

// allocation returns the evidence of the allocation that the instruction is part of: the branch to the slow path.
func (p *place) allocation() evidence {
	m := p.code
	if p.evidenceAt(p.n).kind != noEvidence {
		return evidence{}
	}
	if i := &m.list[p.n]; i.kindOf == arch.KindPrefetch || p.filling(i) == writesRoom || p.headerAt(p.n) {
		return p.slowPath(m.before)
	}
	at := p.n
	for range maxAllocation {
		if at == notInCode || m.list[at].flow != arch.FlowNext {
			break
		}
		switch p.filling(&m.list[at]) {
		case readsRoom:
			return p.slowPath(m.next)
		case writesRoom:
			return evidence{}
		}
		at = m.before(at)
	}
	return evidence{}
}

// headerAt reports whether an instruction writes the header of a new object: the first word, or the class. Compilers
// write these for allocations only. A store of one byte does not count: it may mark a card for the collector.
func (q *question) headerAt(n int32) bool {
	m := q.code
	i := &m.list[n]
	if !i.stores || i.byte || i.indexed || i.base != arch.BaseOther {
		return false
	}
	if i.disp != 0 && (i.disp != maxHeader || q.vm.CompactHeaders()) {
		return false
	}
	for range maxAllocation {
		if n = m.before(n); n == notInCode || m.list[n].flow != arch.FlowNext || len(m.jumpsTo(n)) > 0 {
			return false
		}
		if q.filling(&m.list[n]) == writesRoom {
			return true
		}
	}
	return false
}

// fillingOf says how an instruction accesses the first free address of the thread's buffer.
type fillingOf uint8

const (
	noFilling  fillingOf = iota
	readsRoom            // the instruction reads the address, before the branch to the slow path
	writesRoom           // the instruction writes the address, behind the branch
)

func (f *Finder) filling(i *instruction) fillingOf {
	switch {
	case i.base != arch.BaseThread || i.disp == 0 || i.disp != f.vm.AllocationTop() || i.flow != arch.FlowNext:
		return noFilling
	case i.stores:
		return writesRoom
	}
	return readsRoom
}

// slowPath returns the evidence of the branch to the slow path of an allocation, ahead of the instruction or before it.
func (p *place) slowPath(step func(int32) int32) evidence {
	n := p.n
	for range maxAllocation {
		if n = step(n); n == notInCode {
			break
		}
		if f := p.code.list[n].flow; f == arch.FlowNext {
			continue
		} else if f != arch.FlowBranch {
			break
		}
		if e := p.evidenceAt(n); e.kind == atCheck && p.allocates(e) {
			return e
		}
		break
	}
	return evidence{}
}

// allocates reports whether evidence belongs to a bytecode that makes an object.
func (q *question) allocates(e evidence) bool {
	s := q.methodsOf(e)
	if s == nil {
		return false
	}
	code := q.bytecodes(s[0].Method)
	i := vmstructs.BytecodeAt(code, s[0].BCI)
	return i >= 0 && (code[i].Allocates() || isInvoke(code[i].Op))
}

// makesObject reports whether a check belongs to an allocation: if the check fails, the VM makes the object
// (opto/runtime.cpp: new_instance, new_array and their like).
func (p *place) makesObject(e evidence) bool {
	to, ok := p.recordedTarget(e.scope)
	if !ok {
		return false
	}
	kind, name, err := p.vm.KindAt(to)
	return err == nil && kind == vmstructs.RuntimeStub &&
		(strings.Contains(name, "new_") || strings.Contains(name, "newarray"))
}

// makers are the intrinsic methods for which C2 makes allocations (opto/library_call.cpp).
var makers = []string{"clone", "copyOf", "newArray", "newInstance", "allocate", "toBytes", "toString", "multiplyToLen",
	"NullRest"}

// mayMake reports whether C2 may have made an allocation for a scope's bytecode.
func (f *Finder) mayMake(s vmstructs.Scope) bool {
	b := f.bytecodeOf(s)
	if b == nil || b.Allocates() {
		return b != nil
	}
	if !isInvoke(b.Op) {
		return false
	}
	c := f.invoked(s.Method, b)
	return c.Method == nil || c.Intrinsic && slices.ContainsFunc(makers, func(part string) bool {
		return strings.Contains(c.Method.Name, part)
	})
}
