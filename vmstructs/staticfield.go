package vmstructs

// A class's static fields are in its mirror, the java.lang.Class (oops/instanceMirrorKlass.hpp). A collector may move
// the mirror and the objects of its fields during the reading. So goprof follows the references twice, and uses the
// result if both times agree.

// handleLayout has the field for a class's mirror: oops/klass.hpp.
type handleLayout struct {
	mirror offset `need:"Klass._java_mirror"` // an OopHandle
}

func (r *resolver) handles(jdk8 bool) handleLayout {
	if jdk8 {
		return handleLayout{mirror: absent} // this release has no VarHandles
	}
	return fill[handleLayout](r, capHandles)
}

// objectModel describes where objects have their classes. It does not change while a JVM runs.
type objectModel struct {
	asked   bool
	failed  error
	klasses klassModel
}

// learnObjects finds the layout of objects and references, once.
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
			o.klasses, o.failed = vm.readKlassModel()
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

// wayToStatic has the addresses of a mirror, of the object to which one of its fields refers, and of the object's
// class.
type wayToStatic struct{ mirror, object, klass uint64 }

// wayToStatic follows the references from a class to the object in a static field.
func (vm *VM) wayToStatic(klass uint64, at int32) (w wayToStatic, err error) {
	if w.mirror, err = vm.mirror(klass); err != nil {
		return w, err
	}
	if w.mirror%8 != 0 {
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
