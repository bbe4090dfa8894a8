package vmstructs

import "slices"

// LockFrame is a physical frame of Java code on a thread's stack, from a walk.
type LockFrame struct {
	First, Count int // its methods in the walked stack, beginning with the innermost inlined one
	SP, PC       uint64
	End          uint64 // the beginning of its caller's frame
	Saved        uint64 // the address at which its callee has saved this frame's frame pointer
	Return       uint64 // the return address
	FP, Method   uint64 // of an interpreted frame; 0 for compiled code
	Task         bool   // a method of the frame computes a CompletableFuture
}

const (
	maxLockedStack = 1 << 20   // bytes of a thread's stack that are read for the locks in its frames
	maxFrameLocks  = 256       // of one frame
	codeAddress    = 1<<48 - 1 // the bits of a return address that are not its signature (arm64)
)

// frameLock is an object that a frame seems to have locked. The object's mark word must confirm it.
type frameLock struct {
	object uint64
	frame  int
}

// findHeld finds out what each thread holds: the monitors that name the thread as their owner, the objects in its
// LockStack, and the objects that its frames have locked. The frames also show which frame took a lock.
func (k *Locks) findHeld(all []ThreadLocks, frames map[uint64][]LockFrame) {
	for _, at := range k.listed {
		m := k.monitors[at]
		if m == nil {
			continue
		}
		if i, ok := k.byAddr[m.owner.Thread]; ok {
			all[i].hold(m.lockOf(at))
		}
	}
	for i := range all {
		t := &k.threads[i]
		for _, ref := range t.stack {
			if object, ok := k.root(ref); ok {
				k.heldFast(&all[i], object)
			}
		}
		for _, l := range slices.Backward(k.frameLocks(t, frames[t.Addr])) {
			k.heldInFrame(&all[i], t, l)
		}
	}
}

// hold adds a lock, once.
func (t *ThreadLocks) hold(l Lock) *Held {
	for i := range t.Holds {
		h := &t.Holds[i]
		if l.Object != 0 && h.Object == l.Object || l.Monitor != 0 && h.Monitor == l.Monitor {
			return h
		}
	}
	if len(t.Holds) >= maxHeldByThread {
		return nil
	}
	t.Holds = append(t.Holds, Held{Lock: l, Frame: -1})
	return &t.Holds[len(t.Holds)-1]
}

// lockOn returns the monitor lock of the object at an address, and the object's mark word. ok is false if the object
// cannot be read now.
func (k *Locks) lockOn(object uint64) (l Lock, mark uint64, ok bool) {
	head := k.headOf(&object)
	if head == nil {
		return l, 0, false
	}
	id := object & k.mask
	l = Lock{Kind: MonitorLock, Class: k.nameOf(head), Object: id, Monitor: k.objects[id]}
	return l, word(head), l.Class != ""
}

// heldFast adds an object in a thread's LockStack.
func (k *Locks) heldFast(t *ThreadLocks, object uint64) {
	if l, _, ok := k.lockOn(object); ok {
		t.hold(l)
	}
}

// heldInFrame adds an object that a frame has locked, if the object's mark word shows that the thread holds the lock
// (oops/markWord.hpp). It is called for the outermost frame first, because the first frame with an object took the
// lock.
func (k *Locks) heldInFrame(t *ThreadLocks, th *lockThread, l frameLock) {
	object, ok := k.root(l.object)
	if !ok {
		return
	}
	lock, mark, ok := k.lockOn(object)
	if !ok {
		return
	}
	known := slices.ContainsFunc(t.Holds, func(h Held) bool { return h.Object == lock.Object })
	if !known && !k.marked(&lock, th, mark) {
		return
	}
	if h := t.hold(lock); h != nil && h.Frame < 0 {
		h.Frame = l.frame
	}
}

// marked reports whether an object's mark word confirms that the thread has locked the object. If the mark word points
// to a monitor, marked stores the monitor's address in l.
func (k *Locks) marked(l *Lock, t *lockThread, mark uint64) bool {
	switch {
	case mark&3 == 0:
		return k.legacy && mark < t.StackBase && mark >= t.StackBase-t.StackSize // its BasicLock
	case mark&3 == 2:
		if l.Monitor == 0 {
			l.Monitor = mark &^ 3
		}
		m := k.monitorAt(l.Monitor)
		return m != nil && m.object == l.Object && m.owner.Thread == t.Addr
	case mark&7 == biasedPattern:
		// A biased lock (up to 14, and up to 17 by a flag): the mark word has the thread that has last locked the object. The
		// frame shows that the object is still locked.
		return k.legacy && mark>>biasedShift == t.Addr>>biasedShift
	}
	return false
}

// A biased mark word has the address of the JavaThread in its upper bits, above epoch and age (oops/markOop.hpp of JDK
// 8 and 11, markWord.hpp of 17).
const (
	biasedPattern = 5
	biasedShift   = 10
)

// frameLocks reads the objects that the frames have locked, from the present stack. A frame counts if it still has the
// return address of the walk.
func (k *Locks) frameLocks(t *lockThread, frames []LockFrame) (locks []frameLock) {
	if len(frames) == 0 {
		return nil
	}
	low, high := frames[0].Saved, min(frames[len(frames)-1].End, t.StackBase)
	if low%8 != 0 || low >= high || low < t.StackBase-t.StackSize {
		return nil
	}
	n := int(min(high-low, maxLockedStack))
	k.stack = slices.Grow(k.stack[:0], n)[:n]
	s := liveStack{at: low, words: k.stack}
	if k.vm.mem.Bytes(low, s.words) != nil {
		return nil
	}
	s.thread = t.Addr
	for i := range frames {
		if f := &frames[i]; f.FP != 0 {
			locks = k.interpretedLocks(&s, f, locks)
		} else {
			locks = k.compiledLocks(&s, f, locks)
		}
	}
	return locks
}

// liveStack is a part of a stack in its present state.
type liveStack struct {
	thread uint64
	at     uint64
	words  []byte
}

func (s *liveStack) word(addr uint64) (uint64, bool) {
	off := addr - s.at
	if addr < s.at || off > uint64(len(s.words)) || uint64(len(s.words))-off < 8 {
		return 0, false
	}
	return word(s.words[off:]), true
}

func (s *liveStack) is(addr, value uint64) bool {
	w, ok := s.word(addr)
	return ok && w == value
}

func (s *liveStack) returns(addr, pc uint64) bool {
	w, ok := s.word(addr)
	return ok && w&codeAddress == pc&codeAddress
}

// interpretedLocks reads the BasicObjectLocks of an interpreted frame. They are below the frame's fixed slots, the
// first one at the highest address. The slot below the bytecode pointer shows where they end (frame_*.hpp,
// interpreter_frame_monitor_block_top_offset): an address up to 21, words from the frame pointer since 25.
func (k *Locks) interpretedLocks(s *liveStack, f *LockFrame, locks []frameLock) []frameLock {
	l := k.vm.Interp()
	bottom := f.FP + uint64(int64(l.BCP-1)*8)
	if !s.returns(f.FP+8, f.Return) || !s.is(f.FP+uint64(int64(l.Method)*8), f.Method) {
		return locks
	}
	k.noteTask(s, f)
	slot, ok := s.word(bottom)
	top := SlotAddress(f.FP, slot)
	size := k.vm.l.locks.lockBytes
	if !ok || top > bottom || top < f.SP || (bottom-top)%size != 0 || (bottom-top)/size > maxFrameLocks {
		return locks
	}
	for at := top; at < bottom; at += size { // the lock that was taken last comes first
		if object, ok := s.word(at + uint64(k.vm.l.locks.lockObj)); ok && object != 0 {
			locks = append(locks, frameLock{object, f.First})
		}
	}
	return locks
}

// lockSite is a pc of compiled code.
type lockSite struct {
	blob *Blob
	pc   uint64
}

// siteLock is a monitor that compiled code holds at a pc (code/debugInfo.hpp, MonitorValue).
type siteLock struct {
	scope  int    // the method that holds it: an index of the methods that are inlined at the pc, the innermost first
	at     uint64 // the offset in the frame of the reference to the object
	saved  bool   // the reference was in the frame pointer register, which the called frame has saved
	narrow bool   // the reference has four bytes
}

// compiledLocks reads the objects that the methods of a compiled frame have locked.
func (k *Locks) compiledLocks(s *liveStack, f *LockFrame, locks []frameLock) []frameLock {
	b, err := k.vm.Blob(f.PC)
	if err != nil || b.Kind != Nmethod || b.FrameSize < 1 || !s.returns(f.SP+uint64(b.FrameSize)*8-8, f.Return) {
		return locks
	}
	k.noteTask(s, f)
	pc := f.PC
	if pc == b.DeoptHandlers[0] || pc == b.DeoptHandlers[1] {
		// The frame will be deoptimised when its callee returns. Its real pc is in the frame (code/nmethod.cpp,
		// get_deopt_original_pc).
		pc, _ = s.word(f.SP + uint64(int64(b.OrigPC)))
	}
	for _, l := range k.siteLocks(b, pc) {
		if l.scope >= f.Count {
			continue
		}
		at := f.SP + l.at
		if l.saved {
			at = f.Saved
		}
		v, ok := s.word(at &^ 7)
		if !ok {
			continue
		}
		if l.narrow {
			h := &k.vm.java.heap
			if v = v >> (8 * (at & 4)) & (1<<32 - 1); v == 0 || !h.narrow {
				continue
			}
			v = h.base + v<<h.shift
		}
		if v != 0 {
			locks = append(locks, frameLock{v, f.First + l.scope})
		}
	}
	return locks
}

const maxLockSites = 1 << 16

// siteLocks returns the monitors that compiled code holds at pc. It caches them.
func (k *Locks) siteLocks(b *Blob, pc uint64) []siteLock {
	site := lockSite{b, pc}
	locks, ok := k.sites[site]
	if ok {
		return locks
	}
	if b.holds(pc) && b.End-b.Begin < 1<<31 && b.HasPcDesc(pc) {
		i := b.debug.find(int32(pc-b.Begin), true)
		locks = b.debug.locks(b.debug.scopeOffset(i), k.vm.l.method.unsigned5X)
	}
	if len(k.sites) >= maxLockSites {
		clear(k.sites)
	}
	k.sites[site] = locks
	return locks
}

// locks lists the monitors of the scope at an offset of d.scopes and of its callers (see decode). x is a parameter of
// the encoding of numbers (stream).
func (d *debugInfo) locks(offset int32, x uint8) (locks []siteLock) {
	for scope := range maxInline {
		if offset <= noScope || int(offset) >= len(d.scopes) {
			return locks
		}
		s := stream{b: d.scopes, pos: int(offset), x: x}
		sender := s.u5()
		for range 4 { // method, bci, locals, expressions
			s.u5()
		}
		monitors := s.u5()
		if s.bad {
			return locks
		}
		if monitors != 0 && int64(monitors) < int64(len(d.scopes)) {
			locks = d.scopeLocks(locks, scope, int(monitors), x)
		}
		if len(locks) > maxFrameLocks {
			return locks[:maxFrameLocks]
		}
		offset = int32(sender)
	}
	return locks
}

// The encoding of a ScopeValue (code/debugInfo.cpp) and of a Location (code/location.hpp).
const (
	valueLocation = 0
	valueOop      = 2 // a constant: the compiler knows the object
	valueObjectID = 6 // an object that the compiler has eliminated

	locationOop        = 2 // a reference of eight bytes; the number of a narrow one differs between releases
	locationType       = 1<<4 - 1
	locationInRegister = 1 << 4
	locationOffset     = 5
)

// scopeLocks decodes the monitors of one scope. Their number comes first. Each has a Location of its BasicLock, the
// object, and whether the compiler has eliminated the lock (code/debugInfo.cpp, MonitorValue). It ends at an object of
// another kind.
func (d *debugInfo) scopeLocks(locks []siteLock, scope, at int, x uint8) []siteLock {
	s := stream{b: d.scopes, pos: at, x: x}
	n := s.u5()
	if s.bad || n > maxFrameLocks {
		return locks
	}
	found := len(locks)
	for range n {
		s.u5() // the BasicLock
		switch s.u5() {
		case valueLocation:
			where := s.u5()
			eliminated := s.pos < len(s.b) && s.b[s.pos] != 0
			s.pos++
			if s.bad || eliminated {
				continue
			}
			// Only the frame pointer keeps its value over a call in Java code. All other registers may change.
			locks = append(locks, siteLock{scope: scope, at: uint64(where>>locationOffset) * 4,
				saved: where&locationInRegister != 0, narrow: where&locationType != locationOop})
		case valueOop, valueObjectID:
			s.u5()
			s.pos++
		default:
			return locks
		}
		if s.bad {
			break
		}
	}
	slices.Reverse(locks[found:]) // the lock that was taken last comes first, as in an interpreted frame
	return locks
}
