package vmstructs

import (
	"encoding/binary"

	"goprof/process"
)

// One thread initialises a class. Other threads that need the class wait until that thread is done
// (oops/instanceKlass.cpp, initialize_impl). Two threads may wait for each other's class, and never continue.
//
// The threads wait on an int[] of length 0 to which only the class's mirror refers (java_lang_Class::init_lock). The
// JVM exports neither the int[] nor a path from it to the class. But it exports which classes are being initialised,
// and by which threads. Among these, goprof looks for the class whose mirror refers to the int[].

// initLayout shows which thread initialises a class. oops/instanceKlass.hpp, oops/klass.hpp.
type initLayout struct {
	object      uint64 `need:"class Object"`
	state       sized  `need:"InstanceKlass._init_state"`
	being       uint64 // InstanceKlass::being_initialized
	thread      offset `need:"InstanceKlass._init_thread"` // the JavaThread that initialises it
	mirror      offset `need:"Klass._java_mirror"`
	mirrorIsOop bool   // JDK 8: mirror is the reference; later an OopHandle
	span        int    // bytes of an InstanceKlass that are read
}

func (r *resolver) init(l *initLayout) {
	l.being = uint64(r.int("InstanceKlass::being_initialized", 0))
	l.mirrorIsOop = r.isOop("Klass._java_mirror")
	h := fill[hierarchyLayout](r, capReceivers)
	if l.object == 0 || l.being == 0 || !h.first.ok() || !h.next.ok() || !l.thread.ok() || !l.mirror.ok() {
		l.state.offset = absent
	}
	l.span = span(l.state.offset, l.thread, l.mirror, h.first, h.next)
}

func (l *initLayout) ok() bool { return l.state.offset.ok() }

const (
	maxLoaded   = 1 << 20 // classes that are read
	loadedBatch = 64      // classes that are read with one call
	mirrorBytes = 256     // of a mirror: the fields of java.lang.Class and those that the VM has added
	intArray    = "[I"
)

type initialising struct{ klass, thread uint64 }

// awaitedClass returns the class for whose initialisation a thread waits. at is the monitor of the wait. ok is false
// for other waits. runnable: Java's state of the thread is RUNNABLE, as in no other wait.
func (k *Locks) awaitedClass(at uint64, m *monitor, runnable bool) (w Wanted, ok bool) {
	if m.class != intArray && k.awaited[at] == 0 {
		return w, false
	}
	w = Wanted{Lock: m.lockOf(at), How: WaitToInitialize}
	w.Kind, w.Class = ClassLock, ""
	if !k.vm.l.locks.init.ok() {
		return w, runnable
	}
	c, ok := k.initialisingOf(k.awaited[at], m)
	if !ok {
		delete(k.awaited, at)
		for _, c = range k.allInitialising() {
			if ok = k.mirrorHas(c.klass, m.object); ok {
				break
			}
		}
	}
	if !ok {
		return w, runnable
	}
	name, err := k.vm.klassName(c.klass)
	if err != nil {
		return w, runnable
	}
	k.awaited[at], w.Class = c.klass, name
	if i, ok := k.byAddr[c.thread]; ok {
		w.Owner = k.ownerAt(i)
	}
	return w, true
}

// initialisingOf reads a class again that an earlier round has found. ok is false if it is no longer being initialised.
// If the collector is moving the int[], the mirror is not checked.
func (k *Locks) initialisingOf(klass uint64, m *monitor) (c initialising, ok bool) {
	l := &k.vm.l.locks.init
	b := make([]byte, l.span)
	if klass == 0 || k.vm.mem.Bytes(klass, b) != nil || l.state.unsigned(b) != l.being {
		return c, false
	}
	return initialising{klass, l.thread.u64(b)}, m.object == 0 || k.mirrorHas(klass, m.object)
}

// allInitialising lists the classes that are being initialised. It reads them once in a round. All classes and
// interfaces are subclasses of java.lang.Object (oops/klass.cpp, append_to_sibling_list).
func (k *Locks) allInitialising() []initialising {
	if k.looked {
		return k.inits
	}
	k.looked, k.inits = true, k.inits[:0]
	l, h := &k.vm.l.locks.init, &k.vm.l.hierarchy
	object, err := k.vm.mem.Ptr(l.object)
	if err != nil {
		return nil
	}
	waiting := []uint64{object}
	buf := make([]byte, loadedBatch*l.span)
	ranges := make([]process.Range, 0, loadedBatch)
	for seen := 0; len(waiting) > 0 && seen < maxLoaded; seen += len(ranges) {
		n := min(len(waiting), loadedBatch)
		ranges = ranges[:0]
		for i, klass := range waiting[len(waiting)-n:] {
			ranges = append(ranges, process.Range{Addr: klass, Buf: buf[i*l.span:][:l.span:l.span]})
		}
		waiting = waiting[:len(waiting)-n]
		k.vm.t.ReadMany(ranges)
		for _, r := range ranges {
			if !r.OK {
				continue
			}
			for _, at := range [...]offset{h.first, h.next} {
				if klass := at.u64(r.Buf); klass != 0 && klass%8 == 0 {
					waiting = append(waiting, klass)
				}
			}
			if l.state.unsigned(r.Buf) == l.being && l.thread.u64(r.Buf) != 0 {
				k.inits = append(k.inits, initialising{r.Addr, l.thread.u64(r.Buf)})
			}
		}
	}
	return k.inits
}

// mirrorHas reports whether a class's mirror refers to an object.
func (k *Locks) mirrorHas(klass, object uint64) bool {
	l := &k.vm.l.locks.init
	mirror, err := k.vm.mem.Ptr(klass + uint64(l.mirror))
	if err == nil && !l.mirrorIsOop {
		if mirror, err = k.vm.mem.U64(mirror); err == nil {
			mirror, err = k.uncolour(mirror)
		}
	}
	b := make([]byte, mirrorBytes)
	if err != nil || mirror == 0 || object == 0 {
		return false
	}
	if k.vm.mem.Bytes(mirror, b) != nil { // the mirror may be the last object of the heap
		if b = b[:mirrorBytes/2]; k.vm.mem.Bytes(mirror, b) != nil {
			return false
		}
	}
	if k.forwarded(&mirror, b) == nil {
		return false
	}
	if h := &k.vm.java.heap; h.narrow {
		for ; len(b) >= 4; b = b[4:] {
			if n := binary.LittleEndian.Uint32(b); n != 0 && k.same(h.base+uint64(n)<<h.shift, object) {
				return true
			}
		}
		return false
	}
	for ; len(b) >= 8; b = b[8:] {
		if at, err := k.uncolour(word(b)); err == nil && at != 0 && k.same(at, object) {
			return true
		}
	}
	return false
}
