package vmstructs

import (
	"encoding/binary"
	"fmt"
)

// javaField is an instance field of a Java class.
type javaField struct {
	name   string
	offset uint64 // in the object
}

const (
	maxFieldBytes  = 1 << 20
	maxFields      = 1 << 12  // of one class
	maxFieldText   = 64 << 10 // of all their names
	maxFieldOffset = 1 << 20
)

// fieldFlags are bits of a field's flags in the stream (oops/fieldInfo.hpp, FieldFlags). Their places are exported, and
// differ: 28 has others for value classes.
type fieldFlags struct {
	injected uint32 // added by the VM: its name is a number of a VM symbol
	// Each of these announces one more number, in this order (FieldInfoReader::read_field_info).
	initialized uint32 // an index of the initial value
	generic     uint32 // the index of a generic signature
	contended   uint32 // a contention group
	nullMarker  uint32 // 28 and later: the offset of a byte that says whether the value is null
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

// nextField reads a field of the stream.
func (s *stream) nextField(f *fieldFlags) (name, offset, flags uint32) {
	name, _, offset, _, flags = s.u5(), s.u5(), s.u5(), s.u5(), s.u5()
	for _, more := range []uint32{f.initialized, f.generic, f.contended, f.nullMarker} {
		if flags&more != 0 {
			s.u5()
		}
	}
	return name, offset, flags
}

// fieldsOf lists the fields that a class declares itself. The place of a field in an object depends on the release, on
// flags, even on other fields' sizes, so it is never assumed.
func (vm *VM) fieldsOf(klass uint64) ([]javaField, error) {
	l := &vm.l.method
	if !l.klassPool.ok() || !l.arrayLen.ok() {
		return nil, ErrMissing
	}
	pool, err := vm.mem.Ptr(klass + uint64(l.klassPool))
	if err != nil {
		return nil, err
	}
	n, err := vm.mem.U32(pool + uint64(l.poolLength))
	if err != nil {
		return nil, err
	}
	if n > maxPool {
		return nil, fmt.Errorf("%w: %d constants", ErrBadMethod, n)
	}
	if l.fieldStream.ok() && l.arrayU1.ok() {
		b, err := vm.array(klass+uint64(l.fieldStream), l.arrayU1, 1)
		if err != nil {
			return nil, err
		}
		return vm.fieldStream(pool, n, b)
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
	return vm.fieldTuples(pool, n, b, int(count))
}

// array reads the elements of the Array<> that the pointer at addr points at (oops/array.hpp).
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

// fieldStream decodes what JDK 21 and later have: UNSIGNED5 numbers, how many fields of
// Java and how many injected, then for each its name, signature, offset, access, flags,
// and what the flags announce (oops/fieldInfo.inline.hpp, FieldInfoReader).
func (vm *VM) fieldStream(pool uint64, poolLength uint32, b []byte) ([]javaField, error) {
	s := stream{b: b, x: vm.l.method.unsigned5X}
	n := s.u5()
	injected := s.u5()
	if s.bad || n > maxFields || injected > maxFields {
		return nil, fmt.Errorf("%w: %d fields", ErrBadMethod, n)
	}
	found := fieldList{vm: vm, pool: pool, poolLength: poolLength}
	for range n {
		name, at, flags := s.nextField(&vm.l.method.fieldFlags)
		if s.bad {
			return nil, fmt.Errorf("%w: field stream ends early", ErrBadMethod)
		}
		if flags&vm.l.method.fieldFlags.injected != 0 {
			continue
		}
		if err := found.add(name, uint64(at)); err != nil {
			return nil, err
		}
	}
	return found.fields, nil
}

// fieldTuples decodes what is up to JDK 20: six shorts for each field, access, name,
// signature, initial value, and the offset in two halves, two tag bits below it.
func (vm *VM) fieldTuples(pool uint64, poolLength uint32, b []byte, count int) ([]javaField, error) {
	const tuple = 12
	if count > maxFields {
		return nil, fmt.Errorf("%w: %d fields", ErrBadMethod, count)
	}
	found := fieldList{vm: vm, pool: pool, poolLength: poolLength}
	for i := range count {
		if (i+1)*tuple > len(b) {
			return nil, fmt.Errorf("%w: %d fields in %d bytes", ErrBadMethod, count, len(b))
		}
		t := b[i*tuple:]
		name := binary.LittleEndian.Uint16(t[2:])
		at := binary.LittleEndian.Uint32(t[8:]) >> 2
		if err := found.add(uint32(name), uint64(at)); err != nil {
			return nil, err
		}
	}
	return found.fields, nil
}

// fieldList is fields whose names are in one constant pool.
type fieldList struct {
	vm         *VM
	pool       uint64
	poolLength uint32
	fields     []javaField
	text       int // bytes of all names
}

// add reads the name of a field and keeps it. All names together are bounded.
func (l *fieldList) add(name uint32, at uint64) error {
	f, err := l.vm.field(l.pool, l.poolLength, name, at)
	if err != nil {
		return err
	}
	if l.text += len(f.name); l.text > maxFieldText {
		return fmt.Errorf("%w: %d bytes of fields' names", ErrBadMethod, l.text)
	}
	l.fields = append(l.fields, f)
	return nil
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
