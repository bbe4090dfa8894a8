package vmstructs

import "sort"

// The interpreter resolves an invoke when it first executes it, and keeps the result in the constant pool's cache.
// Compiled code may have an invoke that the interpreter has never executed, because C1 also inlines methods that have
// not run yet (ci/ciEnv.cpp, get_method_by_index_impl, looks up the method by its name). In this case, goprof also
// looks it up by its name.

// namedLayout has the lists of methods that a class declares: oops/instanceKlass.hpp.
type namedLayout struct {
	methods offset `need:"InstanceKlass._methods"` // an array of pointers
	// defaults is an array of the methods that are inherited from interfaces.
	defaults offset `need:"InstanceKlass._default_methods" cap:"what calls of interfaces call"`
	data     offset `need:"Array<Method*>._data"`
	super    offset `need:"Klass._super"`
}

const (
	// maxDeclared bounds the methods of a class, and maxOverloads those with one name.
	maxDeclared  = 1 << 16
	maxOverloads = 1 << 10
)

// methodConstant is a constant that names a method: the constant of the class, and the addresses of two symbols.
type methodConstant struct {
	class           uint16
	name, signature uint64
}

// methodConstant reads a constant of m's class. ok is false if the constant names no method.
func (vm *VM) methodConstant(m *Method, constant uint16) (c methodConstant, ok bool) {
	method, ok := vm.poolSlot(m.pool, constant)
	if !ok {
		return c, false
	}
	both, ok := vm.poolSlot(m.pool, uint16(method>>16)) // the name and the signature
	if !ok {
		return c, false
	}
	c.class = uint16(method)
	c.name, ok = vm.poolSlot(m.pool, uint16(both))
	signature, ok2 := vm.poolSlot(m.pool, uint16(both>>16))
	c.signature = signature
	return c, ok && ok2 && c.name != 0 && c.signature != 0
}

// namedMethod returns the method that a constant of m's class names, 0 if the class of that constant is not known.
func (vm *VM) namedMethod(m *Method, constant uint16) uint64 {
	c, ok := vm.methodConstant(m, constant)
	if !ok {
		return 0
	}
	klass := vm.poolKlass(m.pool, constant)
	if klass == 0 {
		klass = vm.ownKlass(m.pool, c.class)
	}
	return vm.inheritedMethod(klass, c.name, c.signature)
}

// inheritedMethod looks for a method that a class or a superclass declares, and then for one that they inherit from an
// interface. It returns 0 if there is none. Symbols are unique, so it compares their addresses.
func (vm *VM) inheritedMethod(klass, name, signature uint64) uint64 {
	l := &vm.l.invoke.named
	for _, methods := range [2]offset{l.methods, l.defaults} {
		at := klass
		for n := 0; at != 0 && n < maxSupers && methods.ok(); n++ {
			if found := vm.declaredMethod(at, methods, name, signature); found != 0 {
				return found
			}
			at, _ = vm.near.Ptr(at + uint64(l.super))
		}
	}
	return 0
}

// ownKlass returns the class to which a constant pool belongs, if a constant has that class's name, and 0 otherwise.
// The constant of an unresolved class has its name up to 8, and the number of the name's own constant since 9.
func (vm *VM) ownKlass(p *pool, constant uint16) uint64 {
	name, ok := vm.poolSlot(p, constant)
	if ok && vm.l.invoke.klasses.ok() {
		name, ok = vm.poolSlot(p, uint16(name>>16))
	}
	if !ok || name&^1 != word(p.facts[poolKlassName].want) {
		return 0
	}
	klass, _ := vm.near.Ptr(p.addr + uint64(vm.l.method.poolHolder))
	return klass
}

// declaredMethod looks for a method in one of a class's two arrays of methods.
func (vm *VM) declaredMethod(klass uint64, methods offset, name, signature uint64) (method uint64) {
	vm.eachNamed(klass, methods, name, func(d declaredMethod) bool {
		if d.signature == signature {
			method = d.method
		}
		return method == 0
	})
	return method
}

// eachNamed calls f for the methods with one name in such an array, until f returns false. HotSpot keeps methods in the
// order of their names' addresses (oops/method.cpp, sort_methods; instanceKlass.cpp, quick_search).
func (vm *VM) eachNamed(klass uint64, methods offset, name uint64, f func(declaredMethod) bool) {
	array, n := vm.arrayIn(vm.near, klass+uint64(methods), maxDeclared)
	at := func(i uint32) (d declaredMethod) {
		d.method, _ = vm.near.Ptr(array + uint64(vm.l.invoke.named.data) + 8*uint64(i))
		d.name, d.signature = vm.symbolsOf(d.method)
		return d
	}
	low := uint32(sort.Search(int(n), func(i int) bool { return at(uint32(i)).name >= name }))
	for n = min(n, low+maxOverloads); low < n; low++ {
		if d := at(low); d.name != name || !f(d) {
			return
		}
	}
}

// declaredMethod is a method and the addresses of its symbols.
type declaredMethod struct{ method, name, signature uint64 }

// symbolsOf returns the addresses of the symbols of a method's name and signature, 0 if they cannot be read.
func (vm *VM) symbolsOf(method uint64) (name, signature uint64) {
	l := &vm.l.method
	if method == 0 || method%8 != 0 {
		return 0, 0
	}
	body, err := vm.near.Ptr(method + uint64(l.constMethod))
	if err != nil || body == 0 {
		return 0, 0
	}
	constants, err := vm.near.Ptr(body + uint64(l.constants))
	if err != nil || constants == 0 {
		return 0, 0
	}
	symbol := func(index offset) uint64 {
		i, err := vm.near.U16(body + uint64(index))
		if err != nil {
			return 0
		}
		s, _ := vm.near.U64(constants + l.poolSize + 8*uint64(i))
		return s
	}
	return symbol(l.nameIndex), symbol(l.sigIndex)
}

func (vm *VM) poolSlot(p *pool, i uint16) (uint64, bool) {
	if i == 0 || uint32(i) >= p.length {
		return 0, false
	}
	v, err := vm.near.U64(p.addr + vm.l.method.poolSize + 8*uint64(i))
	return v, err == nil
}
