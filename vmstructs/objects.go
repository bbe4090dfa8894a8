package vmstructs

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Objects walks pieces of the Java heap, in which objects follow each other. Each object's header has its class. Class
// and header together show where the next object begins (oops/oop.hpp, oopDesc::size_given_klass; oops/klass.hpp,
// layout helpers). The caller copies the bytes of a piece that begins with an object.
//
// A walk ends at bytes that are not a valid object, with an error that names the reason.
type Objects struct {
	vm       *VM
	klasses  klassModel
	head     int        // bytes of the smallest object
	lengthAt int        // offset of the length of an array
	align    uint64     // objects begin at multiples of it
	pitch    uint64     // the same for the present piece, if it is larger
	chunks   chunkModel // of the present piece
	oopSize  int        // offset of a java.lang.Class's size, which is in words
	bitmap   uint64     // bits of a stack chunk for each word of its stack
	classes  map[uint64]*ObjectClass
	text     int // bytes of their names
	recent   [recentClasses]*ObjectClass
	wrong    map[uint64]bool // addresses that are not classes
}

type ObjectClass struct {
	Klass uint64
	Name  string // in Java's spelling
	// Filler: HotSpot fills unused memory with objects of this class. Up to 18 a filler is a java.lang.Object or an int[],
	// like objects of the program (gc/shared/collectedHeap.cpp, fill_with_object_impl).
	Filler bool
	Sum    uint64 // for the caller: Walk does not use it

	kind     objectKind
	size     uint64 // of an instance, or of an array's header
	logWidth uint8  // of an array's element
	sizeAt   int    // offset of the size in a java.lang.Class or a stack chunk
}

type objectKind uint8

const (
	plainObject objectKind = iota
	arrayObject
	classObject // java.lang.Class: static fields follow its own (oops/instanceMirrorKlass.hpp)
	chunkObject // StackChunk: a stack follows its fields (oops/instanceStackChunkKlass.inline.hpp)
)

// Reasons why a walk ends early.
var (
	ErrNoObject = errors.New("vmstructs: no object yet")
	ErrNoClass  = errors.New("vmstructs: an object's header names no class")
	ErrNoSize   = errors.New("vmstructs: an object's size makes no sense")
)

const (
	recentClasses    = 512     // classes that are found without a search
	maxObjectClasses = 1 << 15 // classes that are cached
	maxObjectText    = 8 << 20 // bytes of their names
	maxWrong         = 1 << 15 // of Objects.wrong
	maxObjectBytes   = 1 << 35 // more than an array of 2^31 elements of eight bytes
	maxAlignment     = 256     // the largest ObjectAlignmentInBytes
)

func (vm *VM) NewObjects() (*Objects, error) {
	l := &vm.l.objects
	if !l.layoutHelper.ok() || l.oopSize == 0 {
		return nil, ErrMissing
	}
	o := &Objects{vm: vm, head: 16, align: 8, bitmap: 1}
	var err error
	if o.klasses, err = vm.readKlassModel(); err != nil {
		return nil, err
	}
	if o.klasses.compact {
		o.head = 8
	}
	length, _ := vm.arrayLayout()
	o.lengthAt = int(length)
	if f, ok := vm.Flag("ObjectAlignmentInBytes"); ok {
		o.align = f.Uint | uint64(f.Int)
	}
	if o.align < 8 || o.align > maxAlignment || o.align&(o.align-1) != 0 {
		return nil, fmt.Errorf("%w: objects aligned by %d", ErrBadTables, o.align)
	}
	if vm.flagOn("UseCompressedOops") {
		o.bitmap = 2
	}
	at, err := vm.mem.I32(l.oopSize)
	if err != nil || at <= 0 || at > maxFieldOffset {
		return nil, fmt.Errorf("%w: the size of a class at %d", ErrBadTables, at)
	}
	o.oopSize = int(at)
	o.Forget()
	return o, nil
}

// Forget removes all classes from the cache. Another class may get the address of one that was unloaded.
func (o *Objects) Forget() {
	o.classes, o.text = map[uint64]*ObjectClass{}, 0
	o.wrong = map[uint64]bool{}
	clear(o.recent[:])
}

// Walk calls visit for each object that begins in b, a copy of the memory at addr. size is the object's number of
// bytes, even if it ends after b. next is the address after the last object. An object whose size is after the end of b
// is left for the next piece. The arguments of visit are valid until Forget.
func (o *Objects) Walk(addr uint64, b []byte, visit func(addr uint64, class *ObjectClass, size uint64)) (next uint64,
	err error) {
	at := uint64(0)
	for at+uint64(o.head) <= uint64(len(b)) {
		class, size, err := o.object(b[at:])
		if err != nil {
			return addr + at, err
		}
		if size == 0 {
			break
		}
		visit(addr+at, class, size)
		at = o.behind(at, size)
	}
	return addr + at, nil
}

// after returns the beginning of the next object after one that ends at end.
func (o *Objects) after(end uint64) uint64 {
	if o.pitch <= o.align {
		return end
	}
	return alignUp(end, o.pitch)
}

// behind returns the beginning of the next object after one of that size.
func (o *Objects) behind(at, size uint64) uint64 {
	return o.after(at + max(size, alignUp(o.chunks.least, o.align)))
}

// object returns the class and the size of the object at the beginning of b. size is 0 if b ends before the size.
func (o *Objects) object(b []byte) (class *ObjectClass, size uint64, err error) {
	if size = o.chunks.freeChunk(b); size > 0 {
		return &freeMemory, size, nil
	}
	klass := o.klasses.klassIn(b)
	class = o.recent[klass/8%recentClasses]
	if klass == 0 || class == nil || class.Klass != klass {
		if class, err = o.class(klass, b); err != nil {
			return nil, 0, err
		}
	}
	size, err = class.size, nil
	switch class.kind {
	case arrayObject:
		size, err = o.sizeAs(b, o.lengthAt, func(n uint64) uint64 { return class.size + n<<class.logWidth })
	case classObject:
		size, err = o.sizeAs(b, class.sizeAt, func(n uint64) uint64 { return 8 * n })
	case chunkObject:
		size, err = o.sizeAs(b, class.sizeAt, func(n uint64) uint64 {
			return class.size + 8*n + (n*o.bitmap+63)/64*8
		})
	}
	if err != nil {
		return nil, 0, err
	}
	return class, alignUp(size, o.align), nil
}

// sizeAs computes a size from the int at an offset of an object. It returns 0 if b is too short.
func (o *Objects) sizeAs(b []byte, at int, size func(n uint64) uint64) (uint64, error) {
	if at+4 > len(b) {
		return 0, nil
	}
	n := int32(binary.LittleEndian.Uint32(b[at:]))
	if n < 0 {
		return 0, ErrNoSize
	}
	bytes := size(uint64(n))
	if bytes < uint64(o.head) || bytes > maxObjectBytes {
		return 0, ErrNoSize
	}
	return bytes, nil
}

// class returns the class of an object with that header. If it is not cached, class reads it.
func (o *Objects) class(klass uint64, head []byte) (*ObjectClass, error) {
	switch {
	case klass == 0 && word(head)&3 == 3:
		return nil, ErrMoved
	case klass == 0:
		return nil, ErrNoObject
	case klass%8 != 0:
		return nil, ErrNoClass
	}
	class := o.classes[klass]
	if class == nil {
		if o.wrong[klass] {
			return nil, ErrNoClass
		}
		var err error
		if class, err = o.readClass(klass); err != nil {
			if len(o.wrong) < maxWrong {
				o.wrong[klass] = true
			}
			return nil, err
		}
		if len(o.classes) >= maxObjectClasses || o.text >= maxObjectText {
			o.Forget()
		}
		o.classes[klass] = class
		o.text += len(class.Name)
	}
	o.recent[klass/8%recentClasses] = class
	return class, nil
}

// A layout helper (oops/klass.hpp) is positive for instances, and is their size. Its lowest bit is set if they are
// allocated in a special way. It is negative for arrays, and has the bytes of the header and the logarithm of an
// element's width.
const (
	helperSlow        = 1
	helperHeaderShift = 16
	helperHeaderMask  = 0xff
	helperWidthMask   = 0x3f
	maxLogWidth       = 3
)

// readClass reads a class, and checks that it is one: isOwnSuper must return true, and only the name of an array may
// begin with a bracket.
func (o *Objects) readClass(klass uint64) (*ObjectClass, error) {
	helper, err := o.vm.mem.I32(klass + uint64(o.vm.l.objects.layoutHelper))
	if err != nil || !o.isOwnSuper(klass) {
		return nil, ErrNoClass
	}
	name, err := o.vm.klassName(klass)
	filler := isFiller(name)
	if err != nil || name == "" || !filler && (name[0] == '[') != (helper < 0) {
		return nil, ErrNoClass
	}
	class := &ObjectClass{Klass: klass, Name: JavaName(name), Filler: filler}
	if helper < 0 {
		class.kind, class.size = arrayObject, uint64(helper)>>helperHeaderShift&helperHeaderMask
		class.logWidth = uint8(helper & helperWidthMask)
		if class.size < uint64(o.lengthAt)+4 || class.logWidth > maxLogWidth {
			return nil, ErrNoClass
		}
		return class, nil
	}
	class.size = uint64(helper) &^ 7
	if class.size < uint64(o.head) || class.size > maxFieldOffset {
		return nil, ErrNoClass
	}
	if helper&helperSlow != 0 {
		err = o.findSize(class, name)
	}
	return class, err
}

// maxPrimary is the number of superclasses that a class lists (oops/klass.hpp, _primary_super_limit).
const maxPrimary = 8

// isOwnSuper reports whether klass may be a class. A class with few superclasses has a list of them that also contains
// the class itself. A field has the index (oops/klass.cpp, initialize_supers). Interfaces, and classes with many
// superclasses, are not in their list.
func (o *Objects) isOwnSuper(klass uint64) bool {
	l := &o.vm.l.objects
	if !l.checkAt.ok() || !l.supers.ok() {
		return true
	}
	at, err := o.vm.mem.U32(klass + uint64(l.checkAt))
	if err != nil || at >= maxOffset || at%8 != 0 {
		return false
	}
	if at < uint32(l.supers) || at >= uint32(l.supers)+8*maxPrimary {
		return true
	}
	own, err := o.vm.mem.Ptr(klass + uint64(at))
	return err == nil && own == klass
}

// findSize finds where objects have their size, if objects of the class have different sizes.
func (o *Objects) findSize(class *ObjectClass, name string) error {
	switch name {
	case "java/lang/Class":
		class.kind, class.sizeAt = classObject, o.oopSize
	case classChunk:
		fields, err := o.vm.fieldsOf(class.Klass)
		if err != nil {
			return ErrNoSize
		}
		class.kind = chunkObject
		for _, f := range fields {
			if f.name == "size" {
				class.sizeAt = int(f.offset)
			}
		}
	default:
		return nil
	}
	if class.sizeAt == 0 {
		return ErrNoSize
	}
	return nil
}

// fillersSince is the first release that fills memory with objects of special classes (JDK-8284435).
const fillersSince = 19

// HidesFillers reports whether the JVM's fillers look like objects of the program.
func (h *Heap) HidesFillers() bool { return h.vm.version.Major < fillersSince }

// isFiller reports whether HotSpot fills memory with objects of a class (since 19; memory/universe.cpp, genesis;
// classfile/vmSymbols.hpp). The array's name differs between releases.
func isFiller(name string) bool {
	return name == "jdk/internal/vm/FillerObject" || name == "Ljdk/internal/vm/FillerArray;" ||
		name == "[Ljdk/internal/vm/FillerElement;"
}

// objectsLayout has the fields that Objects needs: oops/klass.hpp, classfile/javaClasses.hpp.
type objectsLayout struct {
	layoutHelper offset `need:"Klass._layout_helper"`
	oopSize      uint64 `need:"java_lang_Class._oop_size_offset"`
	checkAt      offset `vm:"Klass._super_check_offset"` // offset of its entry in supers
	supers       offset `vm:"Klass._primary_supers[0]"`
}

// capObjects is missing if a JVM does not export all of objectsLayout.
const capObjects = "what the heap holds"
