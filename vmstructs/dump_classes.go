package vmstructs

import (
	"errors"
	"fmt"
)

type DumpClass struct {
	Klass, Super uint64
	Mirror       uint64 // its java.lang.Class
	Loader       uint64 // its class loader, 0 for the boot loader
	Name         string // java/lang/String, [I
	Fields       []DumpField
	Resolved     uint64 // the array of objects that the class's constants refer to, 0 if there is none
}

// DumpField is a field that a class declares itself.
type DumpField struct {
	Name   string
	At     uint32 // offset in an object, or of a static field in the mirror
	Type   byte   // the first character of its descriptor
	Static bool
}

// dumpLayout has the fields that only a heap dump needs: classfile/classLoaderData.hpp, oops/instanceKlass.hpp,
// arrayKlass.hpp, cpCache.hpp, memory/universe.hpp (up to 11), runtime/jniHandles.hpp.
type dumpLayout struct {
	head       uint64   `vm:"ClassLoaderDataGraph._head"`
	nextLoader offset   `vm:"ClassLoaderData._next"`
	arrays     offset   `vm:"InstanceKlass._array_klasses"`
	higher     offset   `vm:"ArrayKlass._higher_dimension"` // the class of arrays with one more dimension
	primitive  []uint64 // variables with the array classes of primitive types, up to 11
	klassAt    uint64   `vm:"java_lang_Class._klass_offset"` // a variable: the offset of the Klass in a java.lang.Class
	poolRefs   offset   `vm:"ConstantPool._resolved_references"`
	// cacheRefs, since 9, and poolRefs, up to 8, are handles.
	cacheRefs    offset `vm:"ConstantPoolCache._resolved_references"`
	handles      offset `vm:"JavaThread._active_handles|Thread._active_handles"` // its first JNIHandleBlock
	slots        offset `vm:"JNIHandleBlock._handles"`
	top          offset `vm:"JNIHandleBlock._top"`
	next         offset `vm:"JNIHandleBlock._next"`
	globals      uint64 `vm:"JNIHandles._global_handles"`
	globalBlocks bool   // up to 8 these are JNIHandleBlocks, too
}

func (r *resolver) dump() dumpLayout {
	l := fill[dumpLayout](r, "")
	if f, ok := r.lookup("JNIHandles._global_handles", true); ok {
		l.globalBlocks = f.typ == "JNIHandleBlock*"
	}
	for _, t := range []string{"bool", "byte", "char", "int", "short", "long", "single", "double"} {
		if at := r.static("", "Universe._"+t+"ArrayKlassObj"); at != 0 {
			l.primitive = append(l.primitive, at)
		}
	}
	return l
}

const (
	maxDumpClasses     = 1 << 18
	maxDumpFields      = 1 << 21  // of all classes
	maxDumpText        = 64 << 20 // bytes of all distinct names
	maxClassFileFields = 1<<16 - 1
	maxDumpLoaders     = 1 << 18 // one for each hidden class
)

// ErrTooLarge: a heap dump of this JVM would need more memory than goprof may use.
var ErrTooLarge = errors.New("vmstructs: more classes, fields or names than any JVM is known to have")

// DumpClasses reads the classes of a stopped JVM.
type DumpClasses struct {
	MirrorClass uint64 // the Klass of java.lang.Class
	Unread      int    // how many classes could not be read

	h       *Heap
	klassAt uint64            // the offset of the Klass in a java.lang.Class
	loader  uint64            // the offset of its class loader
	symbols map[uint64]string // by their addresses
	text    int
	fields  int
	pool    []byte
}

func (h *Heap) NewDumpClasses() (*DumpClasses, error) {
	c := &DumpClasses{h: h, symbols: map[uint64]string{}}
	l := &h.vm.l.dump
	if l.klassAt == 0 || h.vm.l.oops.stringKlass == 0 || !h.vm.l.health.mirror.ok() {
		return nil, ErrMissing
	}
	at, err := h.vm.mem.I32(l.klassAt)
	if err != nil || at <= 0 || at > maxFieldOffset {
		return nil, fmt.Errorf("%w: the class of a java.lang.Class at %d", ErrBadTables, at)
	}
	c.klassAt = uint64(at)
	// java.lang.Class is the class of any mirror.
	klass, err := h.vm.mem.Ptr(h.vm.l.oops.stringKlass)
	if err != nil {
		return nil, err
	}
	mirror, err := c.mirror(klass)
	if err != nil {
		return nil, err
	}
	var head [klassBytes]byte
	if err := h.vm.mem.Bytes(mirror, head[:]); err != nil {
		return nil, err
	}
	c.MirrorClass = h.klasses.klassIn(head[:])
	fields, err := h.vm.fieldsOf(c.MirrorClass)
	if err != nil {
		return nil, err
	}
	for _, f := range fields {
		if f.name == "classLoader" {
			c.loader = f.offset
		}
	}
	if c.loader == 0 {
		return nil, fmt.Errorf("%w: java.lang.Class.classLoader", ErrMissing)
	}
	return c, nil
}

// mirror returns the java.lang.Class of a class, which must refer back to that class.
func (c *DumpClasses) mirror(klass uint64) (uint64, error) {
	vm, l := c.h.vm, &c.h.vm.l.health
	at := klass + uint64(l.mirror)
	if !l.mirrorIsOop {
		var err error
		if at, err = vm.mem.Ptr(at); err != nil {
			return 0, err
		}
	}
	mirror, err := c.h.wideAt(at)
	if err != nil {
		return 0, err
	}
	if back, err := vm.mem.U64(mirror + c.klassAt); err != nil || mirror == 0 || back != klass {
		return 0, fmt.Errorf("%w: no java.lang.Class", ErrBadMethod)
	}
	return mirror, nil
}

// OfPrimitive reports whether a java.lang.Class is that of a primitive type, which has no Klass. b has the object's
// bytes.
func (c *DumpClasses) OfPrimitive(b []byte) bool {
	return uint64(len(b)) >= c.klassAt+8 && word(b[c.klassAt:]) == 0
}

func (c *DumpClasses) Each(visit func(*DumpClass) error) error {
	c.Unread, c.fields = 0, 0
	klasses, err := c.h.klassList()
	if err != nil {
		return err
	}
	for _, klass := range klasses {
		class, err := c.read(klass)
		if errors.Is(err, ErrTooLarge) {
			return err
		} else if err != nil { // a class that is being loaded, or damaged memory
			c.Unread++
			continue
		}
		if err := visit(class); err != nil {
			return err
		}
	}
	return nil
}

// klassList lists the classes by class loader. If the JVM does not export the loaders' classes (up to 8), it follows
// the tree of superclasses.
func (h *Heap) klassList() ([]uint64, error) {
	l, d := &h.vm.l.health, &h.vm.l.dump
	found := &klassSet{seen: map[uint64]bool{}}
	if d.head != 0 && d.nextLoader.ok() && l.klasses.ok() && l.nextKlass.ok() {
		loader := h.health.pointerAt(d.head, 0)
		for n := 0; loader != 0 && n < maxDumpLoaders; n++ {
			for klass := h.health.pointerAt(loader, l.klasses); found.add(klass); {
				klass = h.health.pointerAt(klass, l.nextKlass)
			}
			loader = h.health.pointerAt(loader, d.nextLoader)
		}
	} else if err := h.klassTree(found); err != nil {
		return nil, err
	}
	if len(found.list) > maxDumpClasses {
		return nil, ErrTooLarge
	}
	if len(found.list) == 0 {
		return nil, fmt.Errorf("%w: the list of classes", ErrMissing)
	}
	return found.list, nil
}

// klassSet is a list of classes, each once.
type klassSet struct {
	list []uint64
	seen map[uint64]bool
}

// add adds a class. It returns false if the class is already in the set, or if there is no room.
func (s *klassSet) add(klass uint64) bool {
	if klass == 0 || klass%8 != 0 || s.seen[klass] || len(s.list) > maxDumpClasses {
		return false
	}
	s.seen[klass] = true
	s.list = append(s.list, klass)
	return true
}

// klassTree finds java.lang.Object's Klass, all its subclasses, and the array classes of each.
func (h *Heap) klassTree(found *klassSet) error {
	l, d, tree := &h.vm.l.health, &h.vm.l.dump, &h.vm.l.hierarchy
	if !l.super.ok() || !tree.first.ok() || !tree.next.ok() || !d.arrays.ok() || !d.higher.ok() || len(d.primitive) == 0 {
		return fmt.Errorf("%w: the list of classes", ErrMissing)
	}
	object := h.health.pointerAt(h.vm.l.oops.stringKlass, 0)
	for range maxSupers {
		if super := h.health.pointerAt(object, l.super); super != 0 {
			object = super
		}
	}
	found.add(object)
	for i := 0; i < len(found.list); i++ {
		for klass := h.health.pointerAt(found.list[i], tree.first); found.add(klass); {
			klass = h.health.pointerAt(klass, tree.next)
		}
	}
	for _, klass := range found.list[:len(found.list):len(found.list)] {
		for array := h.health.pointerAt(klass, d.arrays); found.add(array); {
			array = h.health.pointerAt(array, d.higher)
		}
	}
	for _, at := range d.primitive {
		for array := h.health.pointerAt(at, 0); found.add(array); {
			array = h.health.pointerAt(array, d.higher)
		}
	}
	return nil
}

func (c *DumpClasses) read(klass uint64) (*DumpClass, error) {
	vm, l, d := c.h.vm, &c.h.vm.l.health, &c.h.vm.l.dump
	mirror, err := c.mirror(klass)
	if err != nil {
		return nil, err
	}
	class := &DumpClass{Klass: klass, Mirror: mirror, Super: c.h.health.pointerAt(klass, l.super)}
	var loader [8]byte
	if err := vm.mem.Bytes(mirror+c.loader, loader[:c.h.RefSize()]); err != nil {
		return nil, err
	}
	class.Loader = c.h.RefTo(loader[:])
	symbol, err := vm.mem.Ptr(klass + uint64(vm.l.method.klassName))
	if err != nil {
		return nil, err
	}
	if class.Name, err = c.symbol(symbol); err != nil || class.Name == "" {
		return nil, fmt.Errorf("%w: a class without a name", errors.Join(err, ErrBadMethod))
	}
	helper, err := vm.mem.I32(klass + uint64(vm.l.objects.layoutHelper))
	if err != nil || helper < 0 {
		return class, err
	}
	pool, n, err := vm.constantsOf(klass)
	if err != nil {
		return nil, err
	}
	if class.Fields, err = c.fieldsOf(klass, pool, n); err != nil {
		return nil, err
	}
	handle := c.h.health.pointerAt(pool, d.poolRefs)
	if d.cacheRefs.ok() {
		handle = c.h.health.pointerAt(c.h.health.pointerAt(pool, vm.l.invoke.cache), d.cacheRefs)
	}
	if handle != 0 {
		class.Resolved, _ = c.h.wideAt(handle)
	}
	return class, nil
}

func (c *DumpClasses) fieldsOf(klass, pool uint64, constants uint32) ([]DumpField, error) {
	vm := c.h.vm
	raw, err := vm.rawFields(klass, maxClassFileFields)
	if err != nil || len(raw) == 0 {
		return nil, err
	}
	if c.fields += len(raw); c.fields > maxDumpFields {
		return nil, ErrTooLarge
	}
	if need := 8 * int(constants); len(c.pool) < need {
		c.pool = make([]byte, need)
	}
	if err := vm.mem.Bytes(pool+vm.l.method.poolSize, c.pool[:8*constants]); err != nil {
		return nil, err
	}
	fields := make([]DumpField, len(raw))
	for i, r := range raw {
		if r.name == 0 || r.name >= constants || r.sig == 0 || r.sig >= constants || r.offset > maxFieldOffset {
			return nil, fmt.Errorf("%w: field %d at %d", ErrBadMethod, r.name, r.offset)
		}
		name, err := c.symbol(word(c.pool[8*r.name:]) &^ 1)
		if err != nil {
			return nil, err
		}
		sig, err := c.symbol(word(c.pool[8*r.sig:]) &^ 1)
		if err != nil || sig == "" {
			return nil, fmt.Errorf("%w: a field without a type", errors.Join(err, ErrBadMethod))
		}
		fields[i] = DumpField{Name: name, At: r.offset, Type: sig[0], Static: r.access&accStatic != 0}
	}
	return fields, nil
}

// symbol reads a name. Classes share the symbols of equal names.
func (c *DumpClasses) symbol(addr uint64) (string, error) {
	if text, ok := c.symbols[addr]; ok {
		return text, nil
	}
	c.h.vm.methods.trim() // reading the names of all classes fills this cache
	s, err := c.h.vm.readSymbol(addr)
	if err != nil {
		return "", err
	}
	if c.text += len(s.text) + 64; c.text > maxDumpText {
		return "", ErrTooLarge
	}
	c.symbols[addr] = s.text
	return s.text, nil
}
