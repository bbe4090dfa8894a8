package vmstructs

import "slices"

// If only one subclass of an abstract class implements a method, C2 inlines that method, whatever the profile contains
// (opto/doCall.cpp, optimize_inlining; ci/ciMethod.cpp, find_monomorphic_target). goprof reads the hierarchy only if
// the profile has no answer. Classes may have been loaded since the code was compiled.

// hierarchyLayout has a class's list of its subclasses, the newest first (oops/klass.hpp). Classes that implement an
// interface are not in the interface's list.
type hierarchyLayout struct {
	first offset `need:"Klass._subklass"`
	next  offset `need:"Klass._next_sibling"`
}

const (
	// maxBelow bounds the classes that are read. maxInPlace bounds their methods at one index of the vtable.
	maxBelow   = 64
	maxInPlace = 4
)

// onlyBelow returns the only method, other than abstract ones, that a class and its subclasses have at an index of the
// vtable. It is nil if there are several, or if there are too many classes.
func (vm *VM) onlyBelow(klass, table uint64) (only *Method) {
	l := &vm.l.hierarchy
	if !l.first.ok() || !l.next.ok() || klass == 0 {
		return nil
	}
	var waiting [maxBelow]uint64 // classes that are still to be checked
	waiting[0] = klass
	var known [maxInPlace]uint64
	methods := known[:0]
	left := 1
	for looked := 0; left > 0; looked++ {
		if looked == maxBelow {
			return nil
		}
		left--
		klass = waiting[left]
		addr := vm.inVtable(klass, table)
		if addr == 0 {
			return nil
		}
		if !slices.Contains(methods, addr) {
			m, err := vm.MethodNow(addr)
			concrete := err == nil && (m.CodeSize > 0 || m.Native)
			if err != nil || len(methods) == maxInPlace || concrete && only != nil {
				return nil
			}
			if methods = append(methods, addr); concrete {
				only = m
			}
		}
		n, ok := vm.classesBelow(klass, waiting[left:])
		if !ok {
			return nil
		}
		left += n
	}
	return only
}

// classesBelow lists the direct subclasses of a class. ok is false if one of them has another superclass, or if there
// is no room. So a circular list is refused.
func (vm *VM) classesBelow(klass uint64, into []uint64) (n int, ok bool) {
	l := &vm.l.hierarchy
	below, err := vm.near.Ptr(klass + uint64(l.first))
	for below != 0 && err == nil {
		if n == len(into) || below%8 != 0 {
			return 0, false
		}
		super, err2 := vm.near.Ptr(below + uint64(vm.l.invoke.named.super))
		if err2 != nil || super != klass {
			return 0, false
		}
		into[n] = below
		n++
		below, err = vm.near.Ptr(below + uint64(l.next))
	}
	return n, err == nil
}
