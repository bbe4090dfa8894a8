package vmstructs

import (
	"encoding/binary"
	"fmt"
	"slices"

	"goprof/process"
)

// A virtual thread runs on a carrier's stack, above a ContinuationEntry. When it gives up the carrier, its frames are
// copied to the heap, into a StackChunk. When it continues, often only the topmost frames are copied back ("thawed").
// The lowest of these returns to the return barrier, which thaws the next frames (runtime/continuationFreezeThaw.cpp):
//
//	carrier's stack                     heap
//	  frames of the virtual thread        Continuation -> tail
//	  the lowest thawed one                 StackChunk: its callers
//	    returns to the return barrier       parent
//	  ContinuationEntry                       StackChunk: those frozen before
//	  Continuation.run, the carrier's frames
//
// A chunk is a Java object: collectors move it, and the thread changes it whenever it runs. So the bytes of a chunk are
// valid only if its fields were the same before and after the read. The walker checks whether the chunk belongs to a
// stack that was copied earlier.

const (
	maxChunks     = 64      // of one continuation
	maxChunkBytes = 4 << 20 // of all chunks: more than a walk can use
	maxParents    = 8       // nested continuations
	baseBytes     = 2048    // of the carrier's stack above its entry, to be read again
)

// Continuations reads continuations and their virtual threads. A Continuations has its own scratch memory. One
// goroutine may use it while another uses the VM from which it was made.
type Continuations struct {
	vm       *VM // its own VM
	klasses  klassModel
	ready    bool
	retry    int64    // when to try prepare again, by the time of a look
	side     uint64   // offset of the Side in a JavaThread
	sideSize int      // size of the Side
	entry    uint64   // JavaThread::_cont_entry
	mask     uint64   // the bits of a reference that are not its colour
	colours  zColours // of ZGC, during the reading of one continuation
	locks    *Locks   // with ZGC: follows stale references; nil if the JVM's tables do not suffice

	classes map[uint64]*javaClass // by Klass*; nil: not relevant
	chunk   chunkFields
	cont    contFields
	virtual virtualFields
	names   map[uint64]namedThread
	bytes   int               // bytes of names
	owners  map[uint64]uint64 // Continuation -> VirtualThread, which may be out of date

	object [512]byte
	tail   chunkHead // the Continuation itself
	heads  [maxChunks]chunkHead
	nHeads int
	again  [maxChunks * chunkHeadBytes]byte
	// The second reading of a Continuation, and of JavaThread::_cont_entry.
	tailAgain  [chunkHeadBytes]byte
	entryAgain [8]byte
	ranges     []process.Range
	copied     *process.Pieces      // what chunks are read from; nil: the process's memory
	heap       process.Continuation // of EachVirtual
}

// chunkFields are the fields of jdk.internal.vm.StackChunk. sp, size and bottom count words.
type chunkFields struct {
	klass, start                      uint64
	parent, size, sp, bottom, argsize uint64 // argsize up to 21 or so: bottom is size-argsize
	flags, locks                      uint64 // bytes, since 24: see lockStack; 0: not known
}

// contFields are those of jdk.internal.vm.Continuation.
type contFields struct{ klass, tail, span uint64 }

// virtualFields are those of java.lang.VirtualThread.
type virtualFields struct {
	klass, span            uint64
	tid, name, cont, state uint64
}

// namedThread is a thread's name at some moment.
type namedThread struct {
	name string
	when int64
}

const (
	maxNamed     = 1 << 16
	maxNameBytes = 8 << 20     // of all names
	renewNames   = int64(1e9)  // nanoseconds
	retryPrepare = int64(10e9) // nanoseconds; a JVM that has just started may lack some classes
)

// HasVirtual reports whether this JVM has virtual threads, and exports everything that is needed to read them.
func (vm *VM) HasVirtual() bool {
	return vm.l.cont.vthread.ok() && !vm.lacks(capVirtual) && !vm.lacks(capNames)
}

// NewContinuations returns a reader of continuations. It returns nil if HasVirtual is false. It prepares the reader at
// once, so that the first look need not.
func (vm *VM) NewContinuations() *Continuations {
	if !vm.HasVirtual() {
		return nil
	}
	c := &Continuations{vm: newVM(vm.t, vm.l), classes: map[uint64]*javaClass{}, names: map[uint64]namedThread{},
		owners: map[uint64]uint64{}}
	c.vm.lib, c.vm.version, c.vm.barrier, c.vm.missing = vm.lib, vm.version, vm.barrier, vm.missing
	c.vm.returnBarrier() // reads files, so it is done now
	c.vm.ContinuationReturn()
	_ = c.prepare() // each use of c calls prepare again and gets the error then
	return c
}

// ReadFrom makes all later reads go through t, another Target of the same process.
func (c *Continuations) ReadFrom(t process.Target) *Continuations {
	if c != nil {
		c.vm.setMemory(t)
	}
	return c
}

// prepareAt calls prepare. After a failure it waits for retryPrepare before it calls prepare again.
func (c *Continuations) prepareAt(now int64) bool {
	if c.ready {
		return true
	}
	if now < c.retry {
		return false
	}
	c.retry = now + retryPrepare
	return c.prepare() == nil
}

// prepare finds the layouts, once.
func (c *Continuations) prepare() error {
	if c.ready {
		return nil
	}
	if err := c.vm.readJavaFields(); err != nil {
		return err
	}
	var err error
	if c.klasses, err = c.vm.readKlassModel(); err != nil {
		return err
	}
	c.mask = c.vm.offsetMask()
	entry, ok := c.vm.entryOffset()
	if !ok {
		return ErrMissing
	}
	c.entry = uint64(entry)
	c.side, c.sideSize = c.vm.Side()
	if z := &c.vm.java.heap.z; z.on {
		if c.locks, err = c.vm.NewLocks(); err == nil {
			z.stale = c.locks.stale
		}
	}
	c.ready = true
	return nil
}

// IsZGC and CollectorRests are those of Locks.
func (c *Continuations) IsZGC() bool { return c.prepare() == nil && c.locks != nil && c.locks.IsZGC() }

// CollectorRests is that of Locks: stale references are followed only while the collector rests.
func (c *Continuations) CollectorRests(rests bool) {
	if c.prepare() == nil && c.locks != nil {
		c.locks.rests = rests
	}
}

// Read fills in snap.Continuation, soon after the thread was released. when is the time of the look.
func (c *Continuations) Read(snap *process.Snapshot, when int64) {
	k := &snap.Continuation
	k.Reset()
	if len(snap.Side) == 0 || !c.prepareAt(when) || len(snap.Side) != c.sideSize {
		return // a Side of another size was copied, before the JVM had its return barrier
	}
	entry, ok := c.vm.sideWord(snap.Side, offset(c.entry))
	if !ok || entry == 0 {
		return
	}
	own, ok := copied(snap, entry, entrySize)
	if !ok {
		if snap.Cut && entry%8 == 0 && entry > snap.SP {
			k.Entry = entry // above the copied part of a very deep stack: the virtual thread is not known
		}
		return
	}
	k.Entry = entry
	thread := snap.SideAddr - c.side
	if c.vm.holdColours(&c.colours) != nil {
		return
	}
	k.Together = c.takeChunks(snap, own)
	k.Settled = k.Together || c.readChunks(word(own[entryCont:]), k) == nil && c.readBase(snap, thread, own)
	c.copied = &snap.Trail
	c.readIdentity(snap, when, thread, own)
	c.copied = nil
	if !c.vm.letGoColours() {
		k.Together, k.Settled, k.ID, k.Name = false, false, 0, ""
	}
}

// copied returns n bytes of the snapshot's copy of the thread's own stack.
func copied(snap *process.Snapshot, addr uint64, n int) ([]byte, bool) {
	stack, sp := snap.Stack, snap.SP
	if len(snap.Under) > 0 {
		stack, sp = snap.Under, snap.UnderSP
	}
	at := addr - sp
	if addr%8 != 0 || at > uint64(len(stack)) || uint64(len(stack))-at < uint64(n) {
		return nil, false
	}
	return stack[at : at+uint64(n)], true
}

// takeChunks is readChunks from the copies that were made together with the stack. It returns false if there are none.
func (c *Continuations) takeChunks(snap *process.Snapshot, own []byte) bool {
	if len(snap.Trail.List) == 0 {
		return false
	}
	k := &snap.Continuation
	c.copied = &snap.Trail
	err := c.readChunks(word(own[entryCont:]), k)
	c.copied = nil
	if err != nil {
		k.Chunks = k.Chunks[:0]
		return false
	}
	k.BaseAddr = baseOf(snap)
	base, ok := copied(snap, k.BaseAddr, int(k.Entry-k.BaseAddr))
	k.Base = append(k.Base[:0], base...)
	return ok
}

// baseOf returns the lowest address of the part of the stack that is kept with the chunks: baseBytes above the entry.
func baseOf(snap *process.Snapshot) uint64 {
	low := snap.SP
	if len(snap.Under) > 0 {
		low = snap.UnderSP
	}
	k := &snap.Continuation
	return max(low, k.Entry-min(k.Entry, baseBytes))
}

// readBase reads the lowest frames of the virtual thread again. It returns false if the thread no longer runs the same
// continuation.
func (c *Continuations) readBase(snap *process.Snapshot, thread uint64, own []byte) bool {
	k := &snap.Continuation
	k.BaseAddr = baseOf(snap)
	n := int(k.Entry - k.BaseAddr)
	buf := slices.Grow(k.Base[:0], n+entrySize)[:n+entrySize]
	now := c.entryAgain[:]
	k.Base = buf[:n]
	entry := buf[n:]
	return c.unchanged(process.Range{Addr: k.BaseAddr, Buf: buf}, process.Range{Addr: thread + c.entry, Buf: now}) &&
		word(now) == k.Entry &&
		word(entry[entryCont:]) == word(own[entryCont:]) && word(entry[entryFlags:]) == word(own[entryFlags:])
}

// readIdentity finds the virtual thread of the continuation. The carrier may now run another virtual thread. So a
// virtual thread counts only if its own continuation is that of the copied entry.
func (c *Continuations) readIdentity(snap *process.Snapshot, when int64, thread uint64, entry []byte) {
	cont, ok := c.virtualEntry(snap, entry)
	if !ok {
		return
	}
	// The virtual thread that the carrier runs now is tried first, because a remembered one may have ended, and another
	// continuation may have its address.
	obj := c.mounted(thread)
	v, ok := c.owning(obj, cont)
	if ok {
		if len(c.owners) >= maxNamed {
			clear(c.owners)
		}
		c.owners[cont] = obj
	} else if v, ok = c.owning(c.owners[cont], cont); !ok || v.state == terminated {
		delete(c.owners, cont)
		return
	}
	if name, err := c.nameOf(v, when); err == nil {
		snap.Continuation.ID, snap.Continuation.Name = v.ID, name
	}
}

// terminated is VirtualThread.TERMINATED, the same in 21 to 27.
const terminated = 99

// owning reads the virtual thread at obj if the Continuation at cont is its own.
func (c *Continuations) owning(obj, cont uint64) (virtualThread, bool) {
	if obj == 0 {
		return virtualThread{}, false
	}
	v, err := c.readVirtual(obj)
	return v, err == nil && v.cont&c.mask == cont&c.mask && v.ID != 0
}

// objectBytes reads an object as it was in the pause, or as it is now.
func (c *Continuations) objectBytes(addr uint64, b []byte) error {
	if c.copied != nil && c.copied.Read(addr, b) {
		return nil
	}
	return c.vm.mem.Bytes(addr, b)
}

// VirtualHandle returns the address of the reference to the virtual thread that a JavaThread runs, 0 if not known. The
// reference lives as long as the JavaThread (runtime/javaThread.cpp: _vthread is made once, and its referent is
// replaced).
func (vm *VM) VirtualHandle(thread uint64) uint64 {
	if !vm.HasVirtual() {
		return 0
	}
	return vm.pointer(thread, vm.l.cont.vthread)
}

// mounted returns the thread object that a JavaThread ran in the pause, or runs now. It returns 0 if that is not known.
func (c *Continuations) mounted(thread uint64) uint64 {
	handle, b := c.vm.VirtualHandle(thread), [8]byte{}
	if handle == 0 || c.objectBytes(handle, b[:]) != nil {
		return 0
	}
	obj, err := c.vm.uncolour(word(b[:]))
	if err != nil {
		return 0
	}
	return obj
}

// virtualEntry finds the continuation of the virtual thread. Other continuations may be nested in it.
func (c *Continuations) virtualEntry(snap *process.Snapshot, entry []byte) (cont uint64, ok bool) {
	for range maxParents {
		if binary.LittleEndian.Uint32(entry[entryFlags:]) != 0 {
			return word(entry[entryCont:]), true
		}
		if entry, ok = copied(snap, word(entry[entryParent:]), entrySize); !ok {
			return 0, false
		}
	}
	return 0, false
}

type virtualThread struct {
	ID    uint64
	obj   uint64
	cont  uint64 // Continuation
	name  uint64 // String, or 0
	state uint32
}

// readVirtual reads the object at obj if it is a virtual thread.
func (c *Continuations) readVirtual(obj uint64) (virtualThread, error) {
	f := &c.virtual
	v := virtualThread{obj: obj}
	span := max(f.span, klassBytes)
	b := c.object[:span]
	if err := c.objectBytes(obj, b); err != nil {
		return v, c.vm.moved(err)
	}
	klass := c.klasses.klassIn(b)
	if f.klass == 0 || klass != f.klass {
		if err := c.findVirtual(klass); err != nil {
			return v, c.vm.moved(err)
		}
		b = c.object[:f.span]
		if err := c.vm.mem.Bytes(obj, b); err != nil {
			return v, c.vm.moved(err)
		}
	}
	v.ID = word(b[f.tid:])
	v.state = binary.LittleEndian.Uint32(b[f.state:])
	var err error
	if v.cont, err = c.vm.oopIn(b, f.cont); err != nil {
		return v, err
	}
	v.name, err = c.vm.oopIn(b, f.name)
	return v, err
}

var errKind = fmt.Errorf("%w: an object of another class", ErrBadThread)

func (c *Continuations) class(klass uint64, name string) (*javaClass, error) {
	if klass == 0 || klass%8 != 0 {
		return nil, errKind
	}
	known, ok := c.classes[klass]
	if !ok {
		var err error
		if known, err = c.vm.readClass(klass); err != nil {
			return nil, err
		}
		if len(c.classes) >= maxVtables {
			clear(c.classes)
		}
		c.classes[klass] = known
	}
	if !known.is(name) {
		return nil, errKind
	}
	return known, nil
}

func (c *Continuations) findVirtual(klass uint64) error {
	class, err := c.class(klass, classVirtual)
	if err != nil {
		return err
	}
	f := virtualFields{klass: klass, tid: class.fields["tid"], name: class.fields["name"], cont: class.fields["cont"],
		state: class.fields["state"]}
	f.span = max(f.tid, f.name, f.cont, f.state) + 8
	if f.tid == 0 || f.name == 0 || f.cont == 0 || f.state == 0 || f.span > uint64(len(c.object)) {
		return fmt.Errorf("%w: fields of VirtualThread", ErrMissing)
	}
	c.virtual = f
	return nil
}

// nameOf returns the name of v, which may be slightly out of date.
func (c *Continuations) nameOf(v virtualThread, when int64) (string, error) {
	if n, ok := c.names[v.ID]; ok && when-n.when < renewNames {
		return n.name, nil
	}
	name, err := c.readName(v)
	if err != nil {
		return "", err
	}
	if c.bytes += len(name); len(c.names) >= maxNamed || c.bytes > maxNameBytes {
		clear(c.names)
		c.bytes = len(name)
	}
	c.names[v.ID] = namedThread{name, when}
	return name, nil
}

// readName reads the name of v, and then reads the references to its characters again (see VM.ThreadName).
func (c *Continuations) readName(v virtualThread) (string, error) {
	if v.name == 0 {
		return "", nil
	}
	value := v.name + c.vm.java.value
	chars, err := c.vm.oopAt(value)
	if err != nil || chars == 0 {
		return "", err
	}
	name, err := c.vm.charsOf(v.name, chars)
	if err != nil {
		return "", err
	}
	again, err := c.vm.oopAt(value)
	if err != nil || again != chars {
		return "", ErrMoved
	}
	c.copied = nil
	if now, err := c.readVirtual(v.obj); err != nil || now.ID != v.ID || now.name != v.name {
		return "", ErrMoved
	}
	return name, nil
}

// offsetMask has the bits of a reference that are its address: all but ZGC's colours.
func (vm *VM) offsetMask() uint64 {
	z := &vm.java.heap.z
	l := &vm.l.oops
	if !z.on || z.shift != 0 {
		return ^uint64(0) // the bits that were read have no colour
	}
	holder, at := l.zGlobals, vm.l.cont.zOffsetMask
	if l.xGlobals != 0 {
		holder, at = l.xGlobals, vm.l.cont.xOffsetMask
	}
	if mask := vm.pointer(vm.pointer(vm.pointer(holder, 0), at), 0); mask != 0 {
		return mask
	}
	return ^uint64(0)
}
