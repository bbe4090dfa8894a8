package vmstructs

import (
	"cmp"
	"errors"
	"fmt"
)

// Virtual threads are in no list of the VM. The JDK keeps them in thread containers (jdk.internal.vm.ThreadContainers
// and the containers that it registers). All of these are concurrent hash sets:
//
//	Thread.startVirtualThread, Thread.ofVirtual()   the root container's VTHREADS (THREADS in 21)
//	Executors.newVirtualThreadPerTaskExecutor       ThreadPerTaskExecutor.threads
//	other executors                                 SharedThreadContainer.virtualThreads
//	StructuredTaskScope                             ThreadFlock.threads, from its owner's Thread.headStackableScopes
//
// The sets change during the walk. A thread that begins or ends during the walk may be missed.
const (
	classContainers   = "jdk/internal/vm/ThreadContainers"
	classTrackingRoot = "jdk/internal/vm/ThreadContainers$RootContainer$TrackingRootContainer"
	classVirtual      = "java/lang/VirtualThread"
	classThread       = "java/lang/Thread"
)

// Bounds of a whole search, a hundred times what a large program has.
const (
	maxKlasses    = 1 << 21
	maxLoaders    = 1 << 20
	maxSetNodes   = 1 << 24
	maxSlots      = 1 << 28 // of tables
	maxContainers = 1 << 20
	maxScopes     = 1 << 10 // of one thread
	maxNested     = 1 << 12 // nested containers, and tables that lead to the next
	// maxObject bounds the bytes of an object that are read. All needed fields are within.
	maxObject = 4096
)

// search is the state of one EachVirtual.
type search struct {
	c        *Continuations
	visit    func(*VirtualThread)
	census   Census
	light    bool             // neither names nor frames are needed
	nameless bool             // names are not needed
	sets     func(set uint64) // if not nil, called with each set of threads instead of walking the set
	seen     map[uint64]bool  // sets and platform threads, by address
	shown    map[uint64]bool  // virtual threads, by id, because a collector may move a thread that is in two sets
	klasses  map[string]uint64
	depth    int // of container and tableOf, which are recursive

	nodes, slots, containers int
	listed                   int  // classes that were checked
	spent                    bool // a bound is reached, and nothing more is read

	states    map[uint32]virtualState
	suspended uint32
	object    [maxObject]byte
}

func (s *search) enter() error {
	if s.spent {
		return fmt.Errorf("%w: threads and containers without end", ErrBadThread)
	}
	if s.depth >= maxNested {
		return fmt.Errorf("%w: containers in containers without end", ErrBadThread)
	}
	s.depth++
	return nil
}

func (s *search) leave() { s.depth-- }

// run finds the classes that the search needs, and then all virtual threads.
func (s *search) run(platform []Thread) error {
	var err error
	for range virtualTries { // a loader may be unloaded during the search
		if s.klasses, err = s.findKlasses(classContainers, classTrackingRoot, classVirtual); err == nil || s.spent {
			break
		}
	}
	if err != nil {
		return err
	}
	if s.klasses[classVirtual] != 0 { // otherwise there has never been a virtual thread
		s.lists(platform)
	}
	return nil
}

// lists walks all containers except those that virtual threads own.
func (s *search) lists(platform []Thread) {
	s.root()
	s.registry()
	for _, t := range platform {
		// A thread without an object is not yet, or no longer, linked to its object.
		if obj, err := s.c.vm.threadObject(t); err == nil {
			s.scopes(obj)
		} else if errors.Is(err, ErrMoved) {
			s.census.fail(err)
		}
	}
}

// root walks the container of threads that belong to no executor.
func (s *search) root() {
	if s.klasses[classTrackingRoot] == 0 { // this class is loaded if the threads are tracked
		s.census.Untracked = s.klasses[classContainers] != 0
		return
	}
	threads, err := s.static(classTrackingRoot, "VTHREADS", "THREADS")
	if err != nil {
		s.census.fail(err)
		return
	}
	s.threads(threads)
}

func (s *search) threads(set uint64) {
	switch {
	case s.sets == nil:
		s.set(set, s.thread)
	case set != 0 && !s.seen[set]:
		s.seen[set] = true
		s.sets(set)
	}
}

// registry walks the registered containers. The registry has weak references to them.
func (s *search) registry() {
	all, err := s.static(classContainers, "CONTAINER_REGISTRY")
	if err != nil {
		if s.klasses[classContainers] != 0 { // otherwise it has not been needed yet
			s.census.fail(err)
		}
		return
	}
	s.set(all, func(ref uint64) {
		container, err := s.field(ref, "referent")
		if err != nil {
			s.census.fail(err)
			return
		}
		if container != 0 {
			s.container(container)
		}
	})
}

// container walks the threads of one container. Some containers have them in another object, which the field "flock"
// refers to. Failures go to the census.
func (s *search) container(obj uint64) {
	if err := s.enter(); err != nil {
		s.census.fail(err)
		return
	}
	defer s.leave()
	if s.containers++; s.containers > maxContainers {
		s.spent = true
		s.census.fail(fmt.Errorf("%w: containers without end", ErrBadThread))
		return
	}
	o, err := s.read(obj)
	if flock, ok, failed := o.ref("flock"); ok {
		if err = failed; err == nil && flock != 0 { // 0: the container has just been made
			o, err = s.read(flock)
		}
	}
	if err != nil {
		s.census.fail(err)
		return
	}
	threads, _, err1 := o.ref("threads")
	virtual, _, err2 := o.ref("virtualThreads")
	if err := cmp.Or(err1, err2); err != nil {
		s.census.fail(err)
	}
	s.threads(threads)
	s.threads(virtual)
}

func (s *search) scopes(thread uint64) {
	scope, err := s.field(thread, "headStackableScopes")
	for n := 0; err == nil && scope != 0 && !s.spent; n++ {
		if n >= maxScopes {
			err = fmt.Errorf("%w: scopes without end", ErrBadThread)
			break
		}
		s.container(scope)
		scope, err = s.field(scope, "previous")
	}
	if err != nil {
		s.census.fail(err)
	}
}

// thread examines a thread and the containers that it owns, unless this was done before.
func (s *search) thread(obj uint64) {
	class, err := s.classOf(obj)
	switch {
	case err != nil:
		s.census.Seen++
		s.visit(&VirtualThread{Err: err})
	case class.is(classVirtual):
		if s.look(obj) {
			s.scopes(obj)
		}
	case class.is(classThread) && !s.seen[obj]:
		s.seen[obj] = true
		s.scopes(obj)
	}
}

func (s *search) classOf(obj uint64) (*javaClass, error) {
	if obj == 0 || obj%8 != 0 {
		return nil, errKind
	}
	var head [klassBytes]byte
	if err := s.c.vm.mem.Bytes(obj, head[:]); err != nil {
		return nil, s.c.vm.moved(err)
	}
	class, err := s.c.class(s.c.klasses.klassIn(head[:]), "java/lang/Object")
	if err != nil {
		return nil, s.c.vm.moved(err)
	}
	return class, nil
}

// object has an object's bytes, which one call has read. It is valid until the search reads the next object.
type object struct {
	vm    *VM
	class *javaClass
	bytes []byte
}

// read reads an object by its class. A collector may move the object between reading the class and reading the fields.
// So the class is read again together with the fields, and compared.
func (s *search) read(obj uint64) (o object, err error) {
	class, err := s.classOf(obj)
	if err != nil {
		return o, err
	}
	b := s.object[:max(min(class.size, maxObject), klassBytes)]
	if err := s.c.vm.mem.Bytes(obj, b); err != nil {
		return o, s.c.vm.moved(err)
	}
	if again := s.c.klasses.klassIn(b); again == 0 || s.c.classes[again] != class {
		return o, ErrMoved
	}
	return object{s.c.vm, class, b}, nil
}

// ref returns a reference field of an object. ok is false if the object's class has no such field.
func (o *object) ref(field string) (obj uint64, ok bool, err error) {
	if o.class == nil {
		return 0, false, nil
	}
	at, ok := o.class.fields[field]
	if !ok {
		return 0, false, nil
	}
	if at+8 > uint64(len(o.bytes)) && !(o.vm.java.heap.narrow && at+4 <= uint64(len(o.bytes))) {
		return 0, true, fmt.Errorf("%w: field %s at %d", ErrBadThread, field, at)
	}
	obj, err = o.vm.oopIn(o.bytes, at)
	return obj, true, err
}

// long returns an eight-byte integer field of an object. ok is false if the object has no such field.
func (o *object) long(field string) (n int64, ok bool) {
	at, ok := o.class.fields[field]
	if !ok || at+8 > uint64(len(o.bytes)) {
		return 0, false
	}
	return int64(word(o.bytes[at:])), true
}

// field reads a reference field, and returns an error if the object has no such field.
func (s *search) field(obj uint64, name string) (uint64, error) {
	o, err := s.read(obj)
	if err != nil {
		return 0, err
	}
	v, ok, err := o.ref(name)
	if !ok {
		return 0, errKind
	}
	return v, err
}

// statics returns the mirror of a class, and the offsets of the static fields in it.
func (s *search) statics(class string) (mirror uint64, fields map[string]uint64, err error) {
	klass := s.klasses[class]
	if klass == 0 {
		return 0, nil, ErrMissing
	}
	known, err := s.c.class(klass, class)
	if err != nil {
		return 0, nil, err
	}
	mirror, err = s.c.vm.mirror(klass)
	return mirror, known.fields, err
}

// static reads a static reference field: the first of these names that the class has.
func (s *search) static(class string, names ...string) (obj uint64, err error) {
	for range virtualTries {
		mirror, fields, failed := s.statics(class)
		if failed != nil {
			return 0, failed
		}
		at := uint64(0)
		for _, name := range names {
			at = cmp.Or(at, fields[name])
		}
		if at == 0 {
			return 0, ErrMissing
		}
		obj, err = s.c.vm.oopAt(mirror + at)
		if now, _, failed := s.statics(class); failed == nil && now == mirror {
			return obj, err // the mirror was not moved during the reading
		}
	}
	return 0, ErrMoved
}

// findKlasses looks for classes by name among all loaded classes.
func (s *search) findKlasses(names ...string) (map[string]uint64, error) {
	l := &s.c.vm.l.cont
	want := map[string]bool{}
	for _, n := range names {
		want[n] = true
	}
	found := map[string]uint64{}
	loader, err := s.c.vm.mem.Ptr(l.loaders)
	for n := 0; err == nil && loader != 0; n++ {
		if n >= maxLoaders || s.listed >= maxKlasses {
			s.spent = true
			return found, fmt.Errorf("%w: classes without end", ErrBadTables)
		}
		var klass uint64
		if klass, err = s.c.vm.mem.Ptr(loader + uint64(l.klasses)); err != nil {
			break
		}
		for klass != 0 && s.listed < maxKlasses {
			s.listed++
			if name, err := s.c.vm.klassName(klass); err == nil && want[name] && found[name] == 0 {
				found[name] = klass
			}
			if klass, err = s.c.vm.mem.Ptr(klass + uint64(l.nextKlass)); err != nil {
				break
			}
		}
		if len(found) == len(want) {
			return found, nil
		}
		if err == nil {
			loader, err = s.c.vm.mem.Ptr(loader + uint64(l.nextLoader))
		}
	}
	return found, err
}
