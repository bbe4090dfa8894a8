package vmstructs

import (
	"encoding/binary"
	"errors"

	"goprof/process/maybe"
)

// Pools finds out for which executors the threads run, how many tasks these executors run, and how many tasks wait in
// their queues. It stops no thread. If a class lacks a field, or a collector moves the object during the reading, the
// value is not known.
//
// A Pools uses the VM from which it was made. Both belong to one goroutine.
type Pools struct {
	k       *Locks                // follows references for each collector
	classes map[uint64]*poolClass // never dropped, because classes are rarely unloaded
	fields  int                   // of classes
	reads   int                   // objects read in this reading
}

// maxPoolFields bounds the fields of all classes that are cached.
const maxPoolFields = 1 << 17

type ExecutorKind uint8

const (
	ThreadPool ExecutorKind = iota // java.util.concurrent.ThreadPoolExecutor, and Tomcat's
	ForkJoin                       // java.util.concurrent.ForkJoinPool
	Scheduler                      // the ForkJoinPool whose threads are the carriers of virtual threads
	EventLoop                      // Netty's SingleThreadEventExecutor: one thread
)

// Executor is a pool of threads, as its objects describe it.
type Executor struct {
	Kind    ExecutorKind
	Class   string // with slashes
	Object  uint64 // its address at the time
	Threads []uint64

	Core, Most    maybe.Value[int64] // how many threads it keeps, and the most it may have
	Queued, Room  maybe.Value[int64] // how many tasks wait, and how many more fit into the queue
	Scheduled     bool               // some of the waiting tasks may not be due yet
	Next          string             // the class of the next task
	Due           maybe.Value[int64] // if Next is a scheduled task: when it is due, by System.nanoTime
	Running, Done maybe.Value[int64] // how many threads run a task, and how many tasks have ended
}

// Connections is a pool of connections, as HikariCP's objects describe it.
type Connections struct {
	Name    string
	Most    maybe.Value[int64] // the most connections that the pool may have
	All     int64              // the connections that it has
	Waiting maybe.Value[int64] // threads that wait for a connection
	// Lent has, for each lent connection, the time when it was last returned to the pool, by System.nanoTime. So two
	// readings show whether it was returned in between.
	Lent []int64
	// Borrowed is when the oldest loan began. It is only known if HikariCP keeps metrics.
	Borrowed maybe.Value[int64]
	// Holders are threads that hold a lent connection, if threads wait. Other threads may hold some, too.
	Holders []uint64

	entries []poolEntry // of lent connections
}

const (
	maxPoolReads = 1 << 17 // objects of one reading: four for each of about ten thousand threads
	maxWrapped   = 6       // objects between a thread and its executor, or around a task
	maxPoolArray = 1 << 16 // elements of an array: a ForkJoinPool's queues, connections
	maxScheduled = 64      // scheduled tasks that are read to find a pool of connections
)

// NewPools returns a reader of pools, or an error with the missing capabilities of this JVM.
func (vm *VM) NewPools() (*Pools, error) {
	k, err := vm.NewLocks()
	if err != nil {
		return nil, err
	}
	return &Pools{k: k, classes: map[uint64]*poolClass{}}, nil
}

// IsZGC and CollectorRests are those of Locks.
func (p *Pools) IsZGC() bool               { return p.k.IsZGC() }
func (p *Pools) CollectorRests(rests bool) { p.k.CollectorRests(rests) }

var errManyPools = errors.New("vmstructs: too many threads, executors and connections")

// Read reads the executors of these threads, and their pools of connections. If a collector was at work during the
// reading, objects may have been missed or confused with others. Then Read returns only ErrMoved.
func (p *Pools) Read(threads []Thread) (all []*Executor, connections []*Connections, err error) {
	k := p.k
	before := k.vm.heapMoment()
	held := k.vm.holdColours(&k.colours) == nil
	defer k.vm.letGoColours()
	p.reads, k.lost = 0, false
	k.begin(threads)
	k.readThreads()
	k.readObjects()
	by := map[uint64]*Executor{}
	for i := range k.threads {
		w, ok := p.workerOf(k.threads[i].object)
		if !ok {
			continue
		}
		e := by[w.executor.at]
		if e == nil {
			e = &Executor{Kind: w.kind, Class: w.executor.class.name, Object: w.executor.at}
			p.readExecutor(e, w.executor)
			if pool := p.connectionsOf(w.executor); pool != nil {
				connections = append(connections, pool)
			}
			by[w.executor.at] = e
			all = append(all, e)
		}
		e.Threads = append(e.Threads, k.threads[i].Addr)
		p.addWorker(e, w)
	}
	p.findHolders(connections)
	switch {
	case p.reads > maxPoolReads:
		return nil, nil, errManyPools
	case !held || k.lost || !k.vm.nothingMoved(before) || !k.vm.letGoColours():
		return nil, nil, ErrMoved
	}
	return all, connections, nil
}

// poolClass is a class, with its fields and those of its superclasses.
type poolClass struct {
	name   string
	supers map[string]bool // its own name is included
	fields []poolField     // its own fields first
	span   uint64          // the bytes of an object that must be read for them
}

// poolField is a field, and the class that declares it. A subclass may have another field with the same name.
type poolField struct {
	class, name string
	offset      uint64
}

type poolObject struct {
	at    uint64
	class *poolClass
	bytes []byte
}

func (o *poolObject) is(class string) bool { return o.class != nil && o.class.supers[class] }

// read reads an object's class, and then the class again together with the fields, so that both belong to the same
// object.
func (p *Pools) read(at uint64) (o poolObject, ok bool) {
	if p.reads++; p.reads > maxPoolReads || at == 0 || at%8 != 0 {
		return o, false
	}
	head := p.k.headOf(&at)
	if head == nil {
		return o, false
	}
	klass := p.k.klasses.klassIn(head)
	c := p.classOf(klass)
	if c == nil {
		return o, false
	}
	b := make([]byte, c.span)
	if p.k.vm.mem.Bytes(at, b) != nil || p.k.klasses.klassIn(b) != klass {
		return o, false
	}
	return poolObject{at, c, b}, true
}

// classOf reads a class and its superclasses. It returns nil if they cannot be read.
func (p *Pools) classOf(klass uint64) *poolClass {
	if klass == 0 || klass%8 != 0 {
		return nil
	}
	if c, ok := p.classes[klass]; ok {
		return c
	}
	if len(p.classes) >= maxLockClasses || p.fields > maxPoolFields {
		clear(p.classes)
		p.fields = 0
	}
	c := p.readClass(klass)
	if p.classes[klass] = c; c != nil {
		p.fields += len(c.fields)
	}
	return c
}

// readClass reads the names of a class and its superclasses, and all their fields. It returns nil if one cannot be
// read, or if there are too many.
func (p *Pools) readClass(klass uint64) *poolClass {
	c := &poolClass{supers: map[string]bool{}, span: klassBytes}
	vm, text := p.k.vm, 0
	for range maxSupers {
		name, err := vm.klassName(klass)
		if err != nil || name == "" {
			return nil
		}
		if c.supers[name] = true; c.name == "" {
			if c.name = name; name[0] == '[' {
				return c
			}
		}
		fields, err := vm.fieldsOf(klass)
		if err != nil || len(c.fields)+len(fields) > maxClassFields {
			return nil
		}
		text += len(name)
		for _, f := range fields {
			if text += len(f.name); text > maxClassText {
				return nil
			}
			if f.offset+8 <= maxObject {
				c.fields = append(c.fields, poolField{name, f.name, f.offset})
				c.span = max(c.span, f.offset+8)
			}
		}
		if klass, err = vm.mem.Ptr(klass + uint64(vm.l.locks.super)); err != nil {
			return nil
		}
		if klass == 0 {
			return c
		}
	}
	return nil
}

// field returns the offset of a field that a class declares. An empty class stands for any class.
func (o *poolObject) field(class, name string) (at uint64, ok bool) {
	if o.class == nil {
		return 0, false
	}
	for i := range o.class.fields {
		if f := &o.class.fields[i]; f.name == name && (class == "" || f.class == class) {
			return f.offset, true
		}
	}
	return 0, false
}

// number reads a field of four bytes, and long one of eight.
func (o *poolObject) number(class, name string) (n maybe.Value[int64]) {
	if at, ok := o.field(class, name); ok {
		n = maybe.Known(int64(offset(at).i32(o.bytes)))
	}
	return n
}

func (o *poolObject) long(class, name string) (n maybe.Value[int64]) {
	if at, ok := o.field(class, name); ok {
		n = maybe.Known(int64(word(o.bytes[at:])))
	}
	return n
}

// ref returns the address of the object to which a field refers, 0 if it is null or not known.
func (p *Pools) ref(o *poolObject, class, name string) uint64 {
	at, ok := o.field(class, name)
	if !ok {
		return 0
	}
	to, err := p.k.oopIn(o.bytes, at)
	if err != nil {
		return 0
	}
	return to
}

func (p *Pools) follow(o *poolObject, class, name string) (poolObject, bool) {
	return p.read(p.ref(o, class, name))
}

// elements reads up to most references of an array, from index first on.
func (p *Pools) elements(at uint64, first, most int) (refs []uint64, ok bool) {
	h := &p.k.vm.java.heap
	head := make([]byte, max(h.arrayLength+4, klassBytes))
	if at == 0 || p.k.vm.mem.Bytes(at, head) != nil || p.k.forwarded(&at, head) == nil {
		return nil, false
	}
	c := p.classOf(p.k.klasses.klassIn(head))
	n := int(int32(binary.LittleEndian.Uint32(head[h.arrayLength:])))
	if c == nil || c.name[0] != '[' || n > maxPoolArray || first < 0 || first > n {
		return nil, false
	}
	size := uint64(8)
	if h.narrow {
		size = 4
	}
	b := make([]byte, size*uint64(min(n-first, most)))
	if p.k.vm.mem.Bytes(at+alignUp(h.arrayData, size)+size*uint64(first), b) != nil {
		return nil, false
	}
	for i := uint64(0); i < uint64(len(b)); i += size {
		to, err := p.k.oopIn(b, i)
		if err != nil && (size == 4 || word(b[i:])>>16 != 0) { // with ZGC null has a colour in its lowest bits
			return nil, false
		}
		refs = append(refs, to)
	}
	return refs, true
}
