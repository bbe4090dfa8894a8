package vmstructs

// fieldEntryLayout is the layout of the interpreter's facts about fields in the constant pool's cache:
// oops/resolvedFieldEntry.hpp since 22, and before that, the same entries as for methods (oops/cpCache.hpp).
type fieldEntryLayout struct {
	entries offset `vm:"ConstantPoolCache._resolved_field_entries"` // since 22
	data    offset // Array<ResolvedFieldEntry>
	size    uint64
}

// A ResolvedFieldEntry has the class, the offset in the object, the field's number, the number of its constant, the
// type, the flags, and the two resolved bytecodes, of which the first is for reads.
const fieldEntryOffset, fieldEntryConstant, fieldEntryFlags, fieldEntryCodes, fieldEntrySize = 8, 14, 17, 18, 24

// fieldEntryFinal is ResolvedFieldEntry::is_final_shift, oldEntryFinal ConstantPoolCacheEntry::is_final_shift.
const fieldEntryFinal, oldEntryFinal = 1, 22

// fieldEntries finds the entries of fields. needed: methods have entries of their own, so fields must also have them.
func (r *resolver) fieldEntries(needed bool) fieldEntryLayout {
	l := fill[fieldEntryLayout](r, "")
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

// fieldEntry has the facts about a field in the constant pool's cache.
type fieldEntry struct {
	klass      uint64 // the class that declares it
	at         int32  // offset in the object, or in the class's mirror
	gets, puts uint8  // the bytecodes that the interpreter has resolved, 0 for none
	final      bool
	constant   uint16 // the number of the constant that names the field
}

// fieldEntry reads the entry of a getfield or a similar bytecode of m, even if the interpreter has not resolved it.
func (vm *VM) fieldEntry(m *Method, b *Bytecode) (e fieldEntry, ok bool) {
	l := &vm.l.invoke
	cache := vm.poolCache(m)
	if b.Op < OpGetstatic || b.Op > OpPutfield || cache == 0 {
		return e, false
	}
	if l.fields.entries.ok() {
		raw := vm.poolEntry(cache, l.fields.entries, l.fields.data, fieldEntrySize, b.Index)
		if raw == nil {
			return e, false
		}
		return fieldEntry{klass: word(raw), at: int32(offset(fieldEntryOffset).u32(raw)), gets: raw[fieldEntryCodes],
			puts: raw[fieldEntryCodes+1], final: raw[fieldEntryFlags]>>fieldEntryFinal&1 != 0,
			constant: offset(fieldEntryConstant).u16(raw)}, true
	}
	raw := vm.oldEntry(cache, b.Index)
	if raw == nil {
		return e, false
	}
	codes := (l.indices + 2).u16(raw)
	return fieldEntry{klass: l.f1.u64(raw), at: int32(l.f2.u64(raw)), gets: uint8(codes), puts: uint8(codes >> 8),
		final: l.flags.u64(raw)>>l.final&1 != 0, constant: l.indices.u16(raw)}, true
}

// FieldOffset returns the offset in the object of the field that a getfield or putfield of m accesses. ok is false if
// the interpreter has not resolved the field.
func (vm *VM) FieldOffset(m *Method, b *Bytecode) (at int32, ok bool) {
	if b.Op != OpGetfield && b.Op != OpPutfield {
		return 0, false
	}
	e, ok := vm.fieldEntry(m, b)
	return e.at, ok && (e.gets != 0 || e.puts != 0)
}
