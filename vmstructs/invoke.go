package vmstructs

import "goprof/process"

// Invocation has the known facts about an invoke instruction.
type Invocation struct {
	Method    *Method // the called method; nil if not known
	Intrinsic bool    // compilers may have special code for the method
	Never     bool    // the interpreter has not resolved the invoke, so it was rarely or never executed
	Forced    bool    // compilers inline the method regardless of its size
	HandsOn   bool    // the method only calls a method that is one of its arguments: see handsOn
	Access    bool    // one of its arguments is the method with which a VarHandle's class accesses memory: see Accessed
}

// Invoked returns the method that an invoke of m calls, as the interpreter has resolved it in the constant pool. If
// several methods are possible, Method is nil. For a virtual method, Invoked returns the method of the class that the
// invoke names. A compiler inlines this method only if no subclass overrides it.
func (vm *VM) Invoked(m *Method, b *Bytecode) (call Invocation) {
	e, ok := vm.invokeEntry(m, b)
	call.Never = e.never
	if e.never && b.Op != OpInvokeInterface {
		e.method = vm.namedMethod(m, e.constant)
		ok = e.method != 0
	}
	if !ok || e.method == 0 && b.Op != OpInvoke {
		return call
	}
	if e.method == 0 {
		if e.method = vm.virtualMethod(m, e.constant, e.table); e.method == 0 {
			return call
		}
	}
	var err error
	if call.Method, err = vm.MethodNow(e.method); err != nil {
		return Invocation{}
	}
	// The method that a handle's method is linked to is marked as intrinsic (vmIntrinsics.hpp, _compiledLambdaForm) and as
	// one to inline (VarHandleGuards.java; InvokerBytecodeGenerator.java, ForceInline).
	call.Intrinsic, call.Forced = call.Method.Intrinsic && !b.Handle, b.Handle
	call.HandsOn = call.Method.handsOn()
	call.Access = call.HandsOn && call.Method.Name == linkToStatic && m.Class == classGuards
	return call
}

// NeverInvoked returns only Invocation.Never.
func (vm *VM) NeverInvoked(m *Method, b *Bytecode) bool {
	e, _ := vm.invokeEntry(m, b)
	return e.never
}

// poolCache returns the address of the ConstantPoolCache of m's class, 0 if not known.
func (vm *VM) poolCache(m *Method) uint64 {
	if !vm.l.invoke.cache.ok() {
		return 0
	}
	cache, _ := vm.near.Ptr(m.pool.addr + uint64(vm.l.invoke.cache))
	return cache
}

// invokeEntry reads the entry of an invoke in the constant pool's cache. ok is true if the entry identifies the method.
func (vm *VM) invokeEntry(m *Method, b *Bytecode) (e invokeEntry, ok bool) {
	cache := vm.poolCache(m)
	if b.Op < OpInvoke || b.Op > OpInvokeInterface || cache == 0 {
		return e, false
	}
	if !vm.l.invoke.methods.ok() {
		return vm.cacheEntry(cache, b)
	}
	// For an interface's method, the cache has the interface's own method, and any class may have another.
	e, ok = vm.resolvedMethod(cache, b)
	return e, ok && b.Op != OpInvokeInterface
}

// invokeEntry is an invoke's entry in the constant pool's cache: a method, or an index in the vtable.
type invokeEntry struct {
	method   uint64
	constant uint16 // the constant in the class file
	never    bool   // the invoke is not resolved
	table    uint64
}

// cacheEntry reads an entry in the form of JDKs up to 22 (oops/cpCache.hpp, ConstantPoolCacheEntry).
func (vm *VM) cacheEntry(cache uint64, b *Bytecode) (e invokeEntry, ok bool) {
	l := &vm.l.invoke
	raw := vm.oldEntry(cache, b.Index)
	if raw == nil {
		return e, false
	}
	// The resolved bytecodes follow the constant: first a bytecode that uses f1, and then invokevirtual, which uses f2. An
	// invoke of a handle's method is an invokevirtual, but opInvokeHandle here, and f1 is the method to which it is linked
	// (cpCache.cpp, set_method_handle_common).
	e.constant = l.indices.u16(raw)
	resolved := (l.indices + 2).u16(raw)
	byF1, byF2 := uint8(resolved), uint8(resolved>>8)
	e.never = resolved == 0
	switch {
	case b.Handle:
		e.method, ok = l.f1.u64(raw), byF1 == invokeHandle(vm.l.jdk8)
	case b.Op == OpInvokeSpecial || b.Op == OpInvokeStatic:
		e.method, ok = l.f1.u64(raw), byF1 == uint8(b.Op)
	case b.Op != OpInvoke:
		// an interface's method: any class may have its own
	case l.flags.u64(raw)>>l.vfinal&1 != 0:
		e.method, ok = l.f2.u64(raw), byF2 == uint8(OpInvoke)
	default:
		e.table, ok = l.f2.u64(raw), byF2 == uint8(OpInvoke)
	}
	return e, ok
}

// oldEntry reads an entry that is in the cache itself. It returns nil if there is none.
func (vm *VM) oldEntry(cache uint64, index uint16) []byte {
	l := &vm.l.invoke
	n, err := vm.near.U32(cache + uint64(l.length))
	if err != nil || n > maxPool || uint32(index) >= n {
		return nil
	}
	raw := make([]byte, l.entrySize)
	if vm.near.Bytes(cache+l.cacheSize+uint64(index)*l.entrySize, raw) != nil {
		return nil
	}
	return raw
}

// arrayIn returns the Array<> to which the pointer at addr points, and its length. Both are 0 if it is longer than
// most, or cannot be read (oops/array.hpp).
func (vm *VM) arrayIn(r *process.Reader, addr uint64, most uint32) (array uint64, n uint32) {
	array, err := r.Ptr(addr)
	if err != nil || array == 0 {
		return 0, 0
	}
	if n, err = r.U32(array + uint64(vm.l.method.arrayLen)); err != nil || n > most {
		return 0, 0
	}
	return array, n
}

// poolEntry reads an entry of an array to which the cache points. It returns nil if there is none.
func (vm *VM) poolEntry(cache uint64, entries, data offset, size uint64, index uint16) []byte {
	array, n := vm.arrayIn(vm.near, cache+uint64(entries), maxPool)
	raw := make([]byte, size)
	if uint32(index) >= n || vm.near.Bytes(array+uint64(data)+uint64(index)*size, raw) != nil {
		return nil
	}
	return raw
}

// resolvedMethod reads an entry in the form of JDKs since 23 (oops/resolvedMethodEntry.hpp): the method, its index in a
// table, the number of the constant. The entry of a virtual method that is not final has no method.
func (vm *VM) resolvedMethod(cache uint64, b *Bytecode) (e invokeEntry, ok bool) {
	l := &vm.l.invoke
	raw := vm.poolEntry(cache, l.methods, l.methodsData, l.entrySize, b.Index)
	if raw == nil {
		return e, false
	}
	e.method, e.table, e.constant = word(raw), uint64(offset(8).u16(raw)), l.constant.u16(raw)
	byMethod, byTable := raw[len(raw)-2], raw[len(raw)-1] // the bytecodes that are resolved in this entry
	e.never = byTable == 0 && byMethod == 0 && e.method == 0
	return e, !e.never && (!b.Handle || byMethod == opInvokeHandle)
}

// virtualMethod looks up a method in the vtable of the class that the constant names.
func (vm *VM) virtualMethod(m *Method, constant uint16, table uint64) uint64 {
	if constant == 0 || uint32(constant) >= m.pool.length {
		return 0
	}
	return vm.inVtable(vm.poolKlass(m.pool, constant), table)
}

// inVtable returns the method at an index of a class's vtable, 0 if there is none.
func (vm *VM) inVtable(klass, table uint64) uint64 {
	l := &vm.l.invoke
	if klass == 0 || klass%8 != 0 || !l.vtableLen.ok() || table >= maxVtable {
		return 0
	}
	// The length is in words both up to 8 and since 9 (oops/klass.hpp), because a vtableEntry is one word.
	n, err := vm.near.U32(klass + uint64(l.vtableLen))
	if err != nil || table >= uint64(n) {
		return 0
	}
	method, err := vm.near.Ptr(klass + l.vtable + 8*table)
	if err != nil {
		return 0
	}
	return method
}

// maxVtable bounds a vtable. A class file has at most 65,535 methods, and the class may inherit as many.
const maxVtable = 1 << 17

// poolKlass returns the class of a constant that is a method. It returns 0 if the class is not resolved. The lower half
// of such a constant is the number of the class (oops/constantPool.hpp). In 8 the entry of a resolved class is a
// pointer. Since 9 it is the number of an entry in a separate table.
func (vm *VM) poolKlass(p *pool, constant uint16) uint64 {
	l := &vm.l.invoke
	method, ok := vm.poolSlot(p, constant)
	if !ok {
		return 0
	}
	class, ok := vm.poolSlot(p, uint16(method))
	if !ok {
		return 0
	}
	if !l.klasses.ok() {
		if class&1 != 0 {
			return 0 // not resolved
		}
		return class
	}
	array, n := vm.arrayIn(vm.near, p.addr+uint64(l.klasses), maxPool)
	i := uint32(uint16(class))
	if i >= n {
		return 0
	}
	found, _ := vm.near.Ptr(array + uint64(l.klassesData) + 8*uint64(i))
	return found
}

// invokeLayout: oops/cpCache.hpp, oops/resolvedMethodEntry.hpp, oops/klassVtable.hpp.
type invokeLayout struct {
	cache         offset `need:"ConstantPool._cache"`
	length        offset // ConstantPoolCache, up to 22
	cacheSize     uint64 // its entries follow the cache
	indices       offset // ConstantPoolCacheEntry
	f1, f2, flags offset
	vfinal, final uint8  // bits of the flags
	methods       offset `vm:"ConstantPoolCache._resolved_method_entries"` // since 23
	methodsData   offset
	constant      offset // ResolvedMethodEntry
	entrySize     uint64 // size of an entry of either kind
	klasses       offset // ConstantPool, since 9
	klassesData   offset
	intrinsic     sized `need:"Method._intrinsic_id"`
	named         namedLayout
	fields        fieldEntryLayout
	vtableLen     offset `need:"Klass._vtable_len|InstanceKlass._vtable_len"`
	vtable        uint64 `need:"InstanceKlass"` // the vtable follows the InstanceKlass
}

func (r *resolver) invoke() invokeLayout {
	l := fill[invokeLayout](r, capInvokes)
	l.klasses = absent
	if _, jdk8 := r.t.sizes["Flag"]; !jdk8 {
		l.klasses = r.field(capInvokes, "ConstantPool._resolved_klasses")
		l.klassesData = r.field(capInvokes, "Array<Klass*>._data")
	}
	l.fields = r.fieldEntries(l.methods.ok())
	if l.methods.ok() {
		l.methodsData = r.field(capInvokes, "Array<ResolvedMethodEntry>._data")
		l.constant = r.field(capInvokes, "ResolvedMethodEntry._cpool_index")
		if l.entrySize = r.size(capInvokes, "ResolvedMethodEntry"); l.constant != 16 || l.entrySize != 24 {
			r.lost(capInvokes, "ResolvedMethodEntry as it was in 23")
		}
	} else {
		l.length = r.field(capInvokes, "ConstantPoolCache._length")
		l.indices = r.field(capInvokes, "ConstantPoolCacheEntry._indices")
		l.f1 = r.field(capInvokes, "ConstantPoolCacheEntry._f1")
		l.f2 = r.field(capInvokes, "ConstantPoolCacheEntry._f2")
		l.flags = r.field(capInvokes, "ConstantPoolCacheEntry._flags")
		l.vfinal = uint8(r.int("ConstantPoolCacheEntry::is_vfinal_shift", 20)) & 63
		l.final = uint8(r.int("ConstantPoolCacheEntry::is_final_shift", oldEntryFinal)) & 63
		l.cacheSize = r.size(capInvokes, "ConstantPoolCache")
		l.entrySize = max(r.size(capInvokes, "ConstantPoolCacheEntry"), uint64(span(l.indices, l.f1, l.f2, l.flags)))
	}
	if len(r.missing[capInvokes]) > 0 {
		if !l.methods.ok() {
			r.lost(capInvokes, "ConstantPoolCache._resolved_method_entries")
		}
		l.cache = absent
	}
	return l
}
