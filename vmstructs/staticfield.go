package vmstructs

// A class's static fields are in its mirror, the java.lang.Class (oops/instanceMirrorKlass.hpp). The mirror and the
// objects of its fields are in the heap, where a collector may move them while they are read. So goprof follows the
// references twice, and believes the result if both times agree.

// handleLayout says where a mirror is, and how an object tells its class: oops/klass.hpp, compressedKlass.hpp.
type handleLayout struct {
	mirror                  offset // Klass: an OopHandle
	narrowBase, narrowShift uint64 // of class pointers
}

func (r *resolver) handles(jdk8 bool) handleLayout {
	if jdk8 {
		return handleLayout{mirror: absent} // it has no VarHandles
	}
	return handleLayout{
		mirror: r.field(capHandles, "Klass._java_mirror"),
		narrowBase: r.static(capHandles, "CompressedKlassPointers._base|CompressedKlassPointers._narrow_klass._base|"+
			"Universe._narrow_klass._base"),
		narrowShift: r.static(capHandles, "CompressedKlassPointers._shift|CompressedKlassPointers._narrow_klass._shift|"+
			"Universe._narrow_klass._shift"),
	}
}

// objectModel is how references are written, and how objects tell their classes. It does not change while a JVM runs.
type objectModel struct {
	asked   bool
	failed  error
	klasses klassModel
}

// learnObjects asks for it once. vm.java.heap is what the names of threads are read with, too.
func (vm *VM) learnObjects() error {
	o := &vm.objects
	if o.asked {
		return o.failed
	}
	o.asked = true
	vm.withFlags(func() {
		if !vm.java.done {
			vm.java.heap, o.failed = vm.readHeapModel()
		}
		if o.failed == nil {
			o.klasses, o.failed = vm.klassModelAt(vm.l.handles.narrowBase, vm.l.handles.narrowShift)
		}
	})
	return o.failed
}

// classInStatic returns the class of the object to which a static field refers.
func (vm *VM) classInStatic(klass uint64, at int32) (uint64, error) {
	if !vm.l.handles.mirror.ok() || klass == 0 || klass%8 != 0 || at <= 0 || at > maxFieldOffset {
		return 0, ErrMissing
	}
	if err := vm.learnObjects(); err != nil {
		return 0, err
	}
	way, err := vm.wayToStatic(klass, at)
	if err != nil {
		return 0, err
	}
	again, err := vm.wayToStatic(klass, at)
	if err != nil || again != way {
		return 0, ErrMoved
	}
	return way.klass, nil
}

// wayToStatic says where a mirror is, the object to which one of its fields refers, and the object's class.
type wayToStatic struct{ mirror, object, klass uint64 }

// wayToStatic follows the references from a class to the object in a static field.
func (vm *VM) wayToStatic(klass uint64, at int32) (w wayToStatic, err error) {
	handle, err := vm.mem.Ptr(klass + uint64(vm.l.handles.mirror))
	if err != nil {
		return w, err
	}
	if w.mirror, err = vm.wideOopAt(handle); err != nil {
		return w, err
	}
	if w.mirror == 0 || w.mirror%8 != 0 {
		return w, ErrMissing
	}
	if w.object, err = vm.oopAt(w.mirror + uint64(at)); err != nil {
		return w, err
	}
	if w.object == 0 || w.object%8 != 0 {
		return w, ErrMissing
	}
	var head [klassBytes]byte
	if err := vm.mem.Bytes(w.object, head[:]); err != nil {
		return w, err
	}
	if w.klass = vm.objects.klasses.klassIn(head[:]); w.klass == 0 {
		return w, ErrMoved // a collector is moving the object
	}
	return w, nil
}
