package vmstructs

import (
	"cmp"
	"fmt"
	"slices"

	"goprof/process/maybe"
)

// Dead objects with a finalizer wait in the queue of java.lang.ref.Finalizer, which has their number. Other references
// that the collector has found wait in a list, linked by Reference.discovered. It begins in Reference.pending (up to 8)
// or Universe::_reference_pending_list. The thread "Reference Handler" takes the whole list at once.

const (
	classFinalizer = "java/lang/ref/Finalizer"
	classReference = "java/lang/ref/Reference"
	classQueue     = "java/lang/ref/ReferenceQueue"
	// maxBootKlasses bounds the classes of the boot loader that are searched.
	maxBootKlasses = 1 << 17
	referenceTries = 3       // attempts to read objects that a collector moves
	maxQueue       = 1 << 40 // more than any queue has
)

// healthClasses are the classes whose fields Health reads. They are found at their first use.
type healthClasses struct {
	done                 bool
	failed               int // how often they were not found
	klasses              klassModel
	finalizer, reference *staticClass
	queue                map[uint64]uint64 // the offset of queueLength, by the class of a queue
	bits, long           *staticClass      // see DirectMemory
}

// staticClass is a class, and the offsets of its fields.
type staticClass struct {
	klass  uint64
	fields map[string]uint64
}

// prepareClasses finds the classes. It may fail while lists change, so it is tried referenceTries times.
func (h *Health) prepareClasses() error {
	c := &h.classes
	if c.done {
		return nil
	}
	if c.failed >= referenceTries {
		return ErrMissing
	}
	if err := h.findClasses(); err != nil {
		c.failed++
		return err
	}
	c.done = true
	return nil
}

func (h *Health) findClasses() error {
	c := &h.classes
	if err := h.vm.readJavaFields(); err != nil {
		return err
	}
	var err error
	if c.klasses, err = h.vm.readKlassModel(); err != nil {
		return err
	}
	c.queue = map[uint64]uint64{}
	found := map[string]uint64{}
	l := &h.vm.l.health
	if l.finalizer != 0 && l.reference != 0 {
		if found[classFinalizer], err = h.vm.mem.Ptr(l.finalizer); err != nil {
			return err
		}
		found[classReference], err = h.vm.mem.Ptr(l.reference)
	} else {
		found, err = h.bootKlasses(classFinalizer, classReference)
	}
	if err != nil {
		return err
	}
	if c.finalizer, err = h.staticClass(found[classFinalizer]); err != nil {
		return err
	}
	c.reference, err = h.staticClass(found[classReference])
	return err
}

// bootKlasses finds classes by name among those of the boot loader, which is the loader of java.lang.Thread.
func (h *Health) bootKlasses(names ...string) (map[string]uint64, error) {
	l := &h.vm.l.health
	if !l.loaderOf.ok() || !l.klasses.ok() || !l.nextKlass.ok() || h.vm.l.oops.threadKlass == 0 {
		return nil, ErrMissing
	}
	klass := h.pointerAt(h.pointerAt(h.pointerAt(h.vm.l.oops.threadKlass, 0), l.loaderOf), l.klasses)
	found := map[string]uint64{}
	for n := 0; klass != 0 && n < maxBootKlasses && len(found) < len(names); n++ {
		if name, err := h.vm.klassName(klass); err == nil && slices.Contains(names, name) {
			found[name] = klass
		}
		klass = h.pointerAt(klass, l.nextKlass)
	}
	if len(found) < len(names) {
		return nil, fmt.Errorf("%w: no class %s", ErrMissing, names[0])
	}
	return found, nil
}

func (h *Health) staticClass(klass uint64) (*staticClass, error) {
	if klass == 0 || klass%8 != 0 {
		return nil, ErrMissing
	}
	fields, err := h.vm.fieldsOf(klass)
	if err != nil {
		return nil, err
	}
	c := &staticClass{klass, map[string]uint64{}}
	for _, f := range fields {
		c.fields[f.name] = f.offset
	}
	return c, nil
}

// mirror returns the java.lang.Class of a class, which has its static fields (oops/instanceMirrorKlass.hpp).
func (vm *VM) mirror(klass uint64) (uint64, error) {
	l := &vm.l.health
	if !l.mirror.ok() {
		return 0, ErrMissing
	}
	at := klass + uint64(l.mirror)
	if !l.mirrorIsOop {
		var err error
		if at, err = vm.mem.Ptr(at); err != nil {
			return 0, err
		}
	}
	mirror, err := vm.wideOopAt(at)
	if err == nil && mirror == 0 {
		err = ErrMoved
	}
	return mirror, err
}

func (h *Health) static(c *staticClass, field string) (uint64, error) {
	at, ok := c.fields[field]
	if !ok {
		return 0, ErrMissing
	}
	mirror, err := h.vm.mirror(c.klass)
	if err != nil {
		return 0, err
	}
	return h.vm.oopAt(mirror + at)
}

// Finalizers returns how many objects wait for their finalizer.
func (h *Health) Finalizers() maybe.Value[uint64] {
	if h.prepareClasses() != nil {
		return maybe.Value[uint64]{}
	}
	for range referenceTries {
		if n, err := h.finalizersOnce(); err == nil {
			return maybe.If(n, n <= maxQueue)
		}
	}
	return maybe.Value[uint64]{}
}

// finalizersOnce follows the references to the number twice, because a collector may move the objects in between.
func (h *Health) finalizersOnce() (uint64, error) {
	queue, err := h.static(h.classes.finalizer, "queue")
	if err != nil || queue == 0 {
		return 0, ErrMoved
	}
	at, err := h.queueLengthOf(queue)
	if err != nil {
		return 0, err
	}
	n, err := h.vm.mem.U64(queue + at)
	if err != nil {
		return 0, err
	}
	if again, err := h.static(h.classes.finalizer, "queue"); err != nil || again != queue {
		return 0, ErrMoved
	}
	if again, err := h.queueLengthOf(queue); err != nil || again != at {
		return 0, ErrMoved
	}
	return n, nil
}

// queueLengthOf returns the offset of queueLength in a ReferenceQueue. It returns an error if queue is another object.
func (h *Health) queueLengthOf(queue uint64) (uint64, error) {
	var head [klassBytes]byte
	if err := h.vm.mem.Bytes(queue, head[:]); err != nil {
		return 0, err
	}
	c := &h.classes
	klass := c.klasses.klassIn(head[:])
	if klass == 0 || klass%8 != 0 {
		return 0, ErrMoved
	}
	if at, ok := c.queue[klass]; ok {
		return at, nil
	}
	at, err := h.inheritedField(klass, classQueue, "queueLength")
	if err == nil && len(c.queue) < maxVtables {
		c.queue[klass] = at
	}
	return at, err
}

// inheritedField returns the offset of a field in the class klass. The field is declared by class: klass or one of its
// superclasses.
func (h *Health) inheritedField(klass uint64, class, field string) (uint64, error) {
	for range maxSupers {
		name, err := h.vm.klassName(klass)
		if err != nil {
			return 0, err
		}
		if name == class {
			c, err := h.staticClass(klass)
			if err != nil || c.fields[field] == 0 {
				return 0, cmp.Or(err, ErrMissing)
			}
			return c.fields[field], nil
		}
		if klass = h.pointerAt(klass, h.vm.l.health.super); klass == 0 {
			break
		}
	}
	return 0, errKind
}

// Pending returns how many references wait for the Reference Handler, up to most.
func (h *Health) Pending(most int) maybe.Value[uint64] {
	if h.prepareClasses() != nil {
		return maybe.Value[uint64]{}
	}
	for range referenceTries {
		if n, err := h.pendingOnce(most); err == nil {
			return maybe.Known(n)
		}
	}
	return maybe.Value[uint64]{}
}

// pendingHead returns the first reference of the list.
func (h *Health) pendingHead() (uint64, error) {
	if _, old := h.classes.reference.fields["pending"]; old { // up to 8
		return h.static(h.classes.reference, "pending")
	}
	at := h.symbols.pending
	if at == 0 {
		return 0, ErrMissing
	}
	if h.vm.l.thread.objHandle { // an OopHandle, as the thread's object is since the same release (17)
		if at = h.pointerAt(at, 0); at == 0 {
			return 0, ErrMissing
		}
	}
	return h.vm.wideOopAt(at)
}

// pendingOnce counts the references of the pending list, up to most.
func (h *Health) pendingOnce(most int) (n uint64, err error) {
	next, ok := h.classes.reference.fields["discovered"]
	if !ok {
		return 0, ErrMissing
	}
	head, err := h.pendingHead()
	for obj := head; err == nil && obj != 0 && n < uint64(most); {
		n++
		after, failed := h.vm.oopAt(obj + next)
		if after == obj {
			break // the last reference is linked to itself
		}
		obj, err = after, failed
	}
	if err != nil {
		return 0, err
	}
	if again, err := h.pendingHead(); err != nil || again != head {
		return 0, ErrMoved
	}
	return n, nil
}
