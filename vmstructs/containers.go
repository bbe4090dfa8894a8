package vmstructs

import (
	"errors"
	"fmt"
)

// Virtual threads are in no list of the VM. The JDK keeps them in thread containers
// (jdk.internal.vm.ThreadContainers and what it registers), all in concurrent hash sets:
//
//	Thread.startVirtualThread, Thread.ofVirtual()   the root container's VTHREADS (THREADS in 21)
//	Executors.newVirtualThreadPerTaskExecutor       ThreadPerTaskExecutor.threads
//	other executors                                 SharedThreadContainer.virtualThreads
//	StructuredTaskScope                             ThreadFlock.threads, from its owner's Thread.headStackableScopes
//
// The sets change while they are walked; a thread that comes or goes meanwhile may be missed.
const (
	classContainers   = "jdk/internal/vm/ThreadContainers"
	classTrackingRoot = "jdk/internal/vm/ThreadContainers$RootContainer$TrackingRootContainer"
	classVirtual      = "java/lang/VirtualThread"
	classThread       = "java/lang/Thread"
)

// Bounds of the search: a hundred times what a large program has.
const (
	maxKlasses    = 1 << 21
	maxLoaders    = 1 << 20
	maxSetNodes   = 1 << 24
	maxContainers = 1 << 20
	maxTable      = 1 << 28
	maxScopes     = 1 << 10
	maxNested     = 1 << 12 // containers within each other, and tables that lead to the next
)

// search is an EachVirtual under way.
type search struct {
	c       *Continuations
	visit   func(*VirtualThread)
	census  Census
	seen    map[uint64]bool // sets and platform threads, by address
	shown   map[uint64]bool // virtual threads, by id: the collector may move one between two sets that hold it
	klasses map[string]uint64
	nodes   int
	depth   int // of container and tableOf, which lead to themselves

	states    map[uint32]string
	suspended uint32
}

func (s *search) enter() error {
	if s.depth >= maxNested {
		return fmt.Errorf("%w: containers in containers without end", ErrBadThread)
	}
	s.depth++
	return nil
}

func (s *search) leave() { s.depth-- }

func (s *search) run(platform []Thread) error {
	var err error
	for range virtualTries { // a loader may be unloaded meanwhile
		if s.klasses, err = s.findKlasses(classContainers, classTrackingRoot, classVirtual); err == nil {
			break
		}
	}
	if err != nil {
		return err
	}
	if s.klasses[classVirtual] == 0 {
		return nil // none was ever made
	}
	s.root()
	s.registry()
	for _, t := range platform {
		if obj, err := s.c.vm.threadObject(t); err == nil {
			s.scopes(obj)
		}
	}
	return nil
}

// root walks the container of threads that belong to no executor.
func (s *search) root() {
	if s.klasses[classTrackingRoot] == 0 { // it is loaded if they are tracked
		s.census.Untracked = s.klasses[classContainers] != 0
		return
	}
	at, err := s.static(classTrackingRoot, "VTHREADS")
	if errors.Is(err, ErrMissing) {
		at, err = s.static(classTrackingRoot, "THREADS")
	}
	if err != nil {
		s.census.fail(err)
		return
	}
	s.setAt(at, s.thread)
}

// registry walks the containers that are registered: weak references to them.
func (s *search) registry() {
	at, err := s.static(classContainers, "CONTAINER_REGISTRY")
	if err != nil {
		if s.klasses[classContainers] != 0 { // else it has not been needed yet
			s.census.fail(err)
		}
		return
	}
	containers := 0
	s.setAt(at, func(ref uint64) {
		if containers++; containers > maxContainers {
			return
		}
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

// container walks the threads of one container.
func (s *search) container(obj uint64) {
	if err := s.enter(); err != nil {
		s.census.fail(err)
		return
	}
	defer s.leave()
	class, err := s.classOf(obj)
	if err != nil {
		s.census.fail(err)
		return
	}
	if at, ok := class.fields["flock"]; ok {
		flock, err := s.c.vm.oopAt(obj + at)
		if err != nil || flock == 0 {
			return
		}
		obj = flock
		if class, err = s.classOf(obj); err != nil {
			s.census.fail(err)
			return
		}
	}
	for _, name := range []string{"threads", "virtualThreads"} {
		if at, ok := class.fields[name]; ok {
			s.setAt(obj+at, s.thread)
		}
	}
}

// scopes walks the containers that a thread owns.
func (s *search) scopes(thread uint64) {
	scope, err := s.field(thread, "headStackableScopes")
	for n := 0; err == nil && scope != 0 && n < maxScopes; n++ {
		s.container(scope)
		scope, err = s.field(scope, "previous")
	}
}

// thread looks at a thread and at what it owns, unless it has been looked at already.
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

// classOf returns the class of an object.
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

// field reads a reference out of an object.
func (s *search) field(obj uint64, name string) (uint64, error) {
	class, err := s.classOf(obj)
	if err != nil {
		return 0, err
	}
	at, ok := class.fields[name]
	if !ok {
		return 0, errKind
	}
	return s.c.vm.oopAt(obj + at)
}

// static is the address of a static field: it lies in the class's mirror.
func (s *search) static(class, field string) (uint64, error) {
	klass := s.klasses[class]
	if klass == 0 {
		return 0, ErrMissing
	}
	known, err := s.c.class(klass, class)
	if err != nil {
		return 0, err
	}
	at, ok := known.fields[field]
	if !ok {
		return 0, ErrMissing
	}
	handle, err := s.c.vm.mem.Ptr(klass + uint64(s.c.vm.l.cont.mirror))
	if err != nil {
		return 0, err
	}
	mirror, err := s.c.vm.wideOopAt(handle)
	if err != nil {
		return 0, err
	}
	if mirror == 0 {
		return 0, ErrMoved
	}
	return mirror + at, nil
}

// findKlasses looks for classes by name through all that are loaded.
func (s *search) findKlasses(names ...string) (map[string]uint64, error) {
	l := &s.c.vm.l.cont
	want := map[string]bool{}
	for _, n := range names {
		want[n] = true
	}
	found := map[string]uint64{}
	loader, err := s.c.vm.mem.Ptr(l.loaders)
	klasses := 0
	for n := 0; err == nil && loader != 0 && n < maxLoaders; n++ {
		var klass uint64
		if klass, err = s.c.vm.mem.Ptr(loader + uint64(l.klasses)); err != nil {
			break
		}
		for klass != 0 && klasses < maxKlasses {
			klasses++
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
