package vmstructs

import (
	"encoding/binary"
	"fmt"
)

type javaField struct {
	name   string
	offset uint64 // offset in the object
}

const (
	maxFieldBytes  = 1 << 20
	maxFields      = 1 << 12  // of one class
	maxFieldText   = 64 << 10 // of all their names
	maxFieldOffset = 1 << 20
)

// fieldFlags are bits of a field's flags in the stream (oops/fieldInfo.hpp, FieldFlags). Their positions are exported,
// because they differ between releases: 28 has other flags, for value classes.
type fieldFlags struct {
	injected uint32 // added by the VM: the name is the number of a VM symbol
	// Each of these flags announces one more number, in this order (FieldInfoReader::read_field_info).
	initialized uint32 // an index of the initial value
	generic     uint32 // the index of a generic signature
	contended   uint32 // a contention group
	nullMarker  uint32 // 28 and later: the offset of a byte that shows whether the value is null
}

func (r *resolver) fieldFlags() fieldFlags {
	bit := func(name string, otherwise int32) uint32 {
		at := r.int("FieldInfo::FieldFlags::"+name, otherwise)
		if at < 0 || at > 31 {
			return 0
		}
		return 1 << at
	}
	return fieldFlags{initialized: bit("_ff_initialized", 0), injected: bit("_ff_injected", 1),
		generic: bit("_ff_generic", 2), contended: bit("_ff_contended", 4), nullMarker: bit("_ff_null_marker", -1)}
}

// rawField is a field that a class declares. It has the numbers of the constants for name and type, the offset in the
// object or, if the field is static, in the class's mirror, and the access flags of the class file.
type rawField struct{ name, sig, offset, access uint32 }

func (s *stream) nextField(f *fieldFlags) (field rawField, flags uint32) {
	field.name, field.sig, field.offset, field.access, flags = s.u5(), s.u5(), s.u5(), s.u5(), s.u5()
	for _, more := range []uint32{f.initialized, f.generic, f.contended, f.nullMarker} {
		if flags&more != 0 {
			s.u5()
		}
	}
	return field, flags
}

// fieldsOf lists the fields that a class itself declares. The offset of a field depends on the release, on flags, even
// on other fields' sizes, so it is never assumed.
func (vm *VM) fieldsOf(klass uint64) ([]javaField, error) {
	pool, n, err := vm.constantsOf(klass)
	if err != nil {
		return nil, err
	}
	raw, err := vm.rawFields(klass, maxFields)
	if err != nil {
		return nil, err
	}
	fields, text := make([]javaField, 0, len(raw)), 0
	for _, r := range raw {
		f, err := vm.field(pool, n, r.name, uint64(r.offset))
		if err != nil {
			return nil, err
		}
		if text += len(f.name); text > maxFieldText {
			return nil, fmt.Errorf("%w: %d bytes of fields' names", ErrBadMethod, text)
		}
		fields = append(fields, f)
	}
	return fields, nil
}

// constantsOf returns the constant pool of a class, and the number of its constants.
func (vm *VM) constantsOf(klass uint64) (pool uint64, n uint32, err error) {
	l := &vm.l.method
	if !l.klassPool.ok() || !l.arrayLen.ok() {
		return 0, 0, ErrMissing
	}
	if pool, err = vm.mem.Ptr(klass + uint64(l.klassPool)); err != nil {
		return 0, 0, err
	}
	if n, err = vm.mem.U32(pool + uint64(l.poolLength)); err != nil {
		return 0, 0, err
	}
	if n > maxPool {
		return 0, 0, fmt.Errorf("%w: %d constants", ErrBadMethod, n)
	}
	return pool, n, nil
}

// rawFields reads the fields that a class itself declares. It returns an error if there are more than most.
func (vm *VM) rawFields(klass uint64, most int) ([]rawField, error) {
	l := &vm.l.method
	if l.fieldStream.ok() && l.arrayU1.ok() {
		return vm.readFieldStream(klass, most, false)
	}
	if !l.fieldTuples.ok() || !l.fieldCount.ok() || !l.arrayU2.ok() {
		return nil, ErrMissing
	}
	count, err := vm.mem.U16(klass + uint64(l.fieldCount))
	if err != nil {
		return nil, err
	}
	b, err := vm.array(klass+uint64(l.fieldTuples), l.arrayU2, 2)
	if err != nil {
		return nil, err
	}
	return fieldTuples(b, int(count), most)
}

// array reads the elements of the Array<> to which the pointer at addr leads (oops/array.hpp).
func (vm *VM) array(addr uint64, data offset, size int) ([]byte, error) {
	p, err := vm.mem.Ptr(addr)
	if err != nil {
		return nil, err
	}
	n, err := vm.mem.I32(p + uint64(vm.l.method.arrayLen))
	if err != nil {
		return nil, err
	}
	if n < 0 || int(n)*size > maxFieldBytes {
		return nil, fmt.Errorf("%w: array of %d", ErrBadMethod, n)
	}
	b := make([]byte, int(n)*size)
	return b, vm.mem.Bytes(p+uint64(data), b)
}

// injectedIn lists the fields that the VM has added to a class for its own use. Their names are numbers that differ
// between builds. Up to 20 there is no stream of fields, and injected fields cannot be found.
func (vm *VM) injectedIn(klass uint64) ([]rawField, error) {
	if l := &vm.l.method; !l.fieldStream.ok() || !l.arrayU1.ok() || !l.arrayLen.ok() {
		return nil, ErrMissing
	}
	return vm.readFieldStream(klass, maxFields, true)
}

func (vm *VM) readFieldStream(klass uint64, most int, injected bool) ([]rawField, error) {
	b, err := vm.array(klass+uint64(vm.l.method.fieldStream), vm.l.method.arrayU1, 1)
	if err != nil {
		return nil, err
	}
	return vm.fieldStream(b, most, injected)
}

// fieldStream decodes the list of fields of JDK 21 and later. The list consists of UNSIGNED5 numbers. First come the
// numbers of Java fields and of injected fields. Then come, for each field, its name, signature, offset, access, flags,
// and further numbers that the flags announce (oops/fieldInfo.inline.hpp, FieldInfoReader). The injected fields come
// last.
func (vm *VM) fieldStream(b []byte, most int, injected bool) (fields []rawField, err error) {
	l := &vm.l.method
	s := stream{b: b, x: l.unsigned5X}
	n, added := s.u5(), s.u5()
	if s.bad || n > uint32(most) || added > maxFields {
		return nil, fmt.Errorf("%w: %d fields", ErrBadMethod, n)
	}
	if injected {
		n += added
	}
	for range n {
		f, flags := s.nextField(&l.fieldFlags)
		if s.bad {
			return nil, fmt.Errorf("%w: field stream ends early", ErrBadMethod)
		}
		if (flags&l.fieldFlags.injected != 0) == injected {
			fields = append(fields, f)
		}
	}
	return fields, nil
}

// fieldTuples decodes the list of fields up to JDK 20. Each field has six shorts: access, name, signature, initial
// value, and the offset in two halves, whose two lowest bits are tags.
func fieldTuples(b []byte, count, most int) (fields []rawField, err error) {
	const tuple = 12
	if count > most {
		return nil, fmt.Errorf("%w: %d fields", ErrBadMethod, count)
	}
	for i := range count {
		if (i+1)*tuple > len(b) {
			return nil, fmt.Errorf("%w: %d fields in %d bytes", ErrBadMethod, count, len(b))
		}
		short := func(at int) uint32 { return uint32(binary.LittleEndian.Uint16(b[i*tuple+at:])) }
		at := binary.LittleEndian.Uint32(b[i*tuple+8:]) >> 2
		fields = append(fields, rawField{name: short(2), sig: short(4), offset: at, access: short(0)})
	}
	return fields, nil
}

func (vm *VM) field(pool uint64, poolLength, name uint32, at uint64) (javaField, error) {
	if name == 0 || name >= poolLength || at > maxFieldOffset {
		return javaField{}, fmt.Errorf("%w: field %d at %d", ErrBadMethod, name, at)
	}
	entry, err := vm.mem.Ptr(pool + vm.l.method.poolSize + 8*uint64(name))
	if err != nil {
		return javaField{}, err
	}
	s, err := vm.readSymbol(entry &^ 1)
	return javaField{s.text, at}, err
}
