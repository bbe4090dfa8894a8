package vmstructs

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// klassModel describes where an object's header has its class (oops/oop.hpp, markWord.hpp).
type klassModel struct {
	compact bool // in the upper bits of the mark
	narrow  bool // in four bytes after the mark
	base    uint64
	shift   uint64
	inPlace bool // an object that a collector has marked still has its class after the mark
}

// compactShift is markWord::klass_shift of compact headers (since 24).
const compactShift = 42

// klassBytes is the number of bytes of an object that include its class.
const klassBytes = 16

const (
	maxSupers = 32
	// maxClassFields bounds the fields of a class and its superclasses. maxClassText bounds the bytes of their names.
	maxClassFields = 2 * maxFields
	maxClassText   = 2 * maxFieldText
)

func (vm *VM) readKlassModel() (k klassModel, err error) {
	narrowBase, narrowShift := vm.l.wait.narrowBase, vm.l.wait.narrowShift
	if narrowBase == 0 || narrowShift == 0 {
		return k, ErrMissing
	}
	classPointers, exists := vm.Flag("UseCompressedClassPointers")
	k.compact = vm.flagOn("UseCompactObjectHeaders")
	k.narrow = classPointers.Bool || !exists // since 27 always
	if k.base, err = vm.mem.Ptr(narrowBase); err != nil {
		return k, err
	}
	shift, err := vm.mem.U32(narrowShift)
	if err != nil {
		return k, err
	}
	if k.shift = uint64(shift); (k.narrow || k.compact) && k.shift > 16 {
		return k, fmt.Errorf("%w: shift of class pointers %d", ErrBadTables, shift)
	}
	return k, nil
}

// CompactHeaders reports whether an object's class is part of its mark. Then the fields directly follow the mark.
func (vm *VM) CompactHeaders() bool {
	vm.learnHeaders()
	return vm.compact
}

// ArrayLength returns the offset of the length of an array.
func (vm *VM) ArrayLength() int32 {
	vm.learnHeaders()
	return vm.lengthAt
}

// learnHeaders finds the layout of headers, once. Its callers have already found compiled code, so the JVM has read its
// options.
func (vm *VM) learnHeaders() {
	if vm.headersKnown {
		return
	}
	vm.withFlags(func() {
		length, _ := vm.arrayLayout()
		vm.compact, vm.lengthAt, vm.headersKnown = vm.flagOn("UseCompactObjectHeaders"), int32(length), true
	})
}

// klassIn returns the class in the head of an object. It returns 0 if there is none, for example because a collector
// has moved the object away.
func (k *klassModel) klassIn(head []byte) uint64 {
	mark := binary.LittleEndian.Uint64(head)
	if mark&3 == 3 && !k.inPlace {
		return 0 // forwarded (oops/markWord.hpp, marked_value)
	}
	n := mark >> compactShift
	switch {
	case k.compact:
	case k.narrow:
		n = uint64(binary.LittleEndian.Uint32(head[8:]))
	default:
		return binary.LittleEndian.Uint64(head[8:])
	}
	if n == 0 {
		return 0
	}
	return k.base + n<<k.shift
}

type javaClass struct {
	names  []string          // its own name and those of its superclasses, with slashes
	fields map[string]uint64 // own and inherited ones; if two have the same name, its own
	size   uint64            // of an instance, without the stack in a stack chunk
}

func (c *javaClass) is(name string) bool { return slices.Contains(c.names, name) }

// readClass reads the size of a class's objects, the names of the class and its superclasses, and the offsets of their
// fields. If two fields have one name, that of the subclass counts.
func (vm *VM) readClass(klass uint64) (*javaClass, error) {
	l := &vm.l.cont
	helper, err := vm.mem.I32(klass + uint64(l.layoutHelper))
	if err != nil {
		return nil, err
	}
	// oops/klass.hpp: positive for instances; the lowest bit has another meaning.
	if helper <= 0 || helper > maxFieldOffset {
		return nil, fmt.Errorf("%w: layout %#x", ErrBadMethod, helper)
	}
	c := &javaClass{fields: map[string]uint64{}, size: uint64(helper) &^ 7}
	seen, text := 0, 0
	for k := klass; k != 0; {
		if len(c.names) >= maxSupers {
			return nil, fmt.Errorf("%w: superclasses without end", ErrBadMethod)
		}
		name, err := vm.klassName(k)
		if err != nil {
			return nil, err
		}
		c.names = append(c.names, name)
		fields, err := vm.fieldsOf(k)
		if err != nil {
			return nil, err
		}
		for _, f := range fields {
			text += len(f.name)
			if _, twice := c.fields[f.name]; !twice {
				c.fields[f.name] = f.offset
			}
		}
		if seen += len(fields); seen > maxClassFields || text > maxClassText {
			return nil, fmt.Errorf("%w: %d fields", ErrBadMethod, seen)
		}
		if k, err = vm.mem.Ptr(k + uint64(l.super)); err != nil {
			return nil, err
		}
	}
	return c, nil
}

func (vm *VM) klassName(klass uint64) (string, error) {
	addr, err := vm.mem.Ptr(klass + uint64(vm.l.method.klassName))
	if err != nil {
		return "", err
	}
	vm.methods.trim() // reading the names of all classes fills this cache
	s, err := vm.readSymbol(addr)
	return s.text, err
}

// oopIn returns a reference in an object's bytes.
func (vm *VM) oopIn(b []byte, at uint64) (uint64, error) {
	h := &vm.java.heap
	if !h.narrow {
		return vm.uncolour(word(b[at:]))
	}
	n := binary.LittleEndian.Uint32(b[at:])
	if n == 0 {
		return 0, nil
	}
	return h.base + uint64(n)<<h.shift, nil
}
