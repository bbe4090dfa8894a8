package vmstructs

// Invocation is what is known of an invoke.
type Invocation struct {
	Method    *Method // the method that it calls; nil if that is not known
	Intrinsic bool    // compilers may have code of their own for the method
	Never     bool    // the interpreter has not resolved the invoke: hardly any program has come to it
	Forced    bool    // compilers inline the method whatever its size
	HandsOn   bool    // the method only calls another one, which it is given: see handsOn
	Access    bool    // it is given the method with which a VarHandle's own class accesses: see Accessed
}

// Invoked returns which method an invoke of m calls, as the constant pool of m's class has resolved it for the
// interpreter. If more than one method may be called, Invoked does not choose. For a virtual method it returns the
// method of the class that the invoke names: a compiler that inlines this method has seen that no subclass overrides
// it.
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
	// The method to which a handle's method is linked has the number of an intrinsic method (vmIntrinsics.hpp,
	// _compiledLambdaForm), and as one to inline (VarHandleGuards.java; InvokerBytecodeGenerator.java, ForceInline).
	call.Intrinsic, call.Forced = call.Method.Intrinsic && !b.Handle, b.Handle
	call.HandsOn = call.Method.handsOn()
	call.Access = call.HandsOn && call.Method.Name == linkToStatic && m.Class == classGuards
	return call
}

// NeverInvoked is Invocation.Never alone.
func (vm *VM) NeverInvoked(m *Method, b *Bytecode) bool {
	e, _ := vm.invokeEntry(m, b)
	return e.never
}

// invokeEntry reads what the constant pool's cache has of an invoke. ok: the cache says which method is called.
func (vm *VM) invokeEntry(m *Method, b *Bytecode) (e invokeEntry, ok bool) {
	l := &vm.l.invoke
	if b.Op < OpInvoke || b.Op > OpInvokeInterface || !l.cache.ok() {
		return e, false
	}
	cache, err := vm.near.Ptr(m.pool.addr + uint64(l.cache))
	if err != nil || cache == 0 {
		return e, false
	}
	if !l.methods.ok() {
		return vm.cacheEntry(cache, b)
	}
	// For an interface's method the pool has the interface's own method, and any class may have another one.
	e, ok = vm.resolvedMethod(cache, b)
	return e, ok && b.Op != OpInvokeInterface
}

// invokeEntry is what the constant pool's cache has of an invoke: a method, or the place in the vtable.
type invokeEntry struct {
	method   uint64
	constant uint16 // the constant that the class file names
	never    bool   // it is not resolved
	table    uint64
}

// cacheEntry reads an entry as JDKs up to 22 have them (oops/cpCache.hpp, ConstantPoolCacheEntry).
func (vm *VM) cacheEntry(cache uint64, b *Bytecode) (e invokeEntry, ok bool) {
	l := &vm.l.invoke
	raw := vm.oldEntry(cache, b.Index)
	if raw == nil {
		return e, false
	}
	// The constant is followed by the bytecodes that have been resolved here: one that uses f1, and invokevirtual,
	// which uses f2. An invoke of a handle's method is written as invokevirtual, and counts as opInvokeHandle here: f1
	// is the method that it is linked to (cpCache.cpp, set_method_handle_common).
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
		// an interface's method: that of any class may be called
	case l.flags.u64(raw)>>l.vfinal&1 != 0:
		e.method, ok = l.f2.u64(raw), byF2 == uint8(OpInvoke)
	default:
		e.table, ok = l.f2.u64(raw), byF2 == uint8(OpInvoke)
	}
	return e, ok
}

// oldEntry reads an entry of the cache itself, nil if there is none.
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

// poolEntry reads an entry of an array to which the cache points, nil if there is none.
func (vm *VM) poolEntry(cache uint64, entries, data offset, size uint64, index uint16) []byte {
	array, err := vm.near.Ptr(cache + uint64(entries))
	if err != nil {
		return nil
	}
	n, err := vm.near.U32(array + uint64(vm.l.method.arrayLen))
	if err != nil || n > maxPool || uint32(index) >= n {
		return nil
	}
	raw := make([]byte, size)
	if vm.near.Bytes(array+uint64(data)+uint64(index)*size, raw) != nil {
		return nil
	}
	return raw
}

// resolvedMethod reads an entry as JDKs since 23 have them (oops/resolvedMethodEntry.hpp): the method, then its place
// in a table, then the number of the constant. The entry of a virtual method that is not final has no method.
func (vm *VM) resolvedMethod(cache uint64, b *Bytecode) (e invokeEntry, ok bool) {
	l := &vm.l.invoke
	raw := vm.poolEntry(cache, l.methods, l.methodsData, l.entrySize, b.Index)
	if raw == nil {
		return e, false
	}
	e.method, e.table, e.constant = word(raw), uint64(offset(8).u16(raw)), l.constant.u16(raw)
	byMethod, byTable := raw[len(raw)-2], raw[len(raw)-1] // the bytecodes that have been resolved here
	e.never = byTable == 0 && byMethod == 0 && e.method == 0
	return e, !e.never && (!b.Handle || byMethod == opInvokeHandle)
}

// virtualMethod looks a method up in the vtable of the class that the constant names.
func (vm *VM) virtualMethod(m *Method, constant uint16, table uint64) uint64 {
	if constant == 0 || uint32(constant) >= m.pool.length {
		return 0
	}
	return vm.inVtable(vm.poolKlass(m.pool, constant), table)
}

// inVtable returns the method in a place of a class's vtable, 0 if there is none.
func (vm *VM) inVtable(klass, table uint64) uint64 {
	l := &vm.l.invoke
	if klass == 0 || klass%8 != 0 || !l.vtableLen.ok() || table >= maxVtable {
		return 0
	}
	// The length is in words up to 8 and since 9 (oops/klass.hpp): a vtableEntry is one word.
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

// maxVtable bounds a vtable: a class file has at most that many methods, and inherits as many.
const maxVtable = 1 << 17

// poolKlass returns the class of a constant that is a method (oops/constantPool.hpp): the lower half of such a constant
// is the number of the class. In 8 the entry of a resolved class is a pointer. Since 9 it is the number of an entry in
// a separate table.
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
	array, err := vm.near.Ptr(p.addr + uint64(l.klasses))
	if err != nil {
		return 0
	}
	n, err := vm.near.U32(array + uint64(vm.l.method.arrayLen))
	if i := uint32(uint16(class)); err == nil && i < n && n <= maxPool {
		klass, _ := vm.near.Ptr(array + uint64(l.klassesData) + 8*uint64(i))
		return klass
	}
	return 0
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
	entrySize     uint64 // of either kind
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
