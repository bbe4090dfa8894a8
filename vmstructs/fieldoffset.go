package vmstructs

// fieldEntryLayout says where the constant pool's cache has what the interpreter knows of a field:
// oops/resolvedFieldEntry.hpp since 22, before in the same entries as methods (oops/cpCache.hpp).
type fieldEntryLayout struct {
	entries offset // ConstantPoolCache, since 22
	data    offset // Array<ResolvedFieldEntry>
	size    uint64
}

// Of a ResolvedFieldEntry: the class, the offset in the object, two numbers of constants, the type, the flags, and the
// two bytecodes that have been resolved here.
const fieldEntryOffset, fieldEntryCodes, fieldEntrySize = 8, 18, 24

// fieldEntries is called when it is known that methods have entries of their own: no release has that without fields.
func (r *resolver) fieldEntries(needed bool) fieldEntryLayout {
	l := fieldEntryLayout{entries: r.field("", "ConstantPoolCache._resolved_field_entries")}
	switch {
	case l.entries.ok():
		l.data = r.field(capInvokes, "Array<ResolvedFieldEntry>._data")
		if l.size = r.size(capInvokes, "ResolvedFieldEntry"); l.size != fieldEntrySize {
			r.lost(capInvokes, "ResolvedFieldEntry as it was in 23")
		}
	case needed:
		r.lost(capInvokes, "ConstantPoolCache._resolved_field_entries")
	}
	return l
}

// FieldOffset returns at which offset of an object a getfield or putfield of m accesses its field. ok is false where
// the interpreter has not resolved it.
func (vm *VM) FieldOffset(m *Method, b *Bytecode) (at int32, ok bool) {
	l := &vm.l.invoke
	if b.Op != OpGetfield && b.Op != OpPutfield || !l.cache.ok() {
		return 0, false
	}
	cache, err := vm.near.Ptr(m.pool.addr + uint64(l.cache))
	if err != nil || cache == 0 {
		return 0, false
	}
	if l.fields.entries.ok() {
		raw := vm.poolEntry(cache, l.fields.entries, l.fields.data, fieldEntrySize, b.Index)
		if raw == nil {
			return 0, false
		}
		return int32(offset(fieldEntryOffset).u32(raw)), offset(fieldEntryCodes).u16(raw) != 0
	}
	raw := vm.oldEntry(cache, b.Index)
	if raw == nil {
		return 0, false
	}
	return int32(l.f2.u64(raw)), (l.indices + 2).u16(raw) != 0
}
