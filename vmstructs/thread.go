package vmstructs

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"

	"goprof/process"
)

// Thread is a JavaThread: a thread that can run Java. Compiler threads are JavaThreads. The collector's threads and the
// VM thread are not.
type Thread struct {
	Addr      uint64
	NSTID     int // in the JVM's innermost pid namespace; 0: not started or ended
	State     ThreadState
	StackBase uint64 // the high end
	StackSize uint64
	Compiler  bool
	Pthread   uint64 // its pthread_t, 0 if not known

	obj uint64 // the value of JavaThread::_threadObj
}

const (
	maxThreads   = 1 << 18
	maxStackSize = 1 << 40
	maxVtables   = 256
	// maxNamesAsked bounds the threads of a list whose names isCompiler reads, because a damaged list may have a million
	// vtables.
	maxNamesAsked = 64
	threadBatch   = 64 // threads that are read with one call
)

type threadCache struct {
	ptrs     []byte
	raw      []byte
	ranges   []process.Range
	compiler map[uint64]bool // by vtable: whether it is CompilerThread's
	asked    int             // the number of names that isCompiler has read for this list
}

func (c *threadCache) init() { c.compiler = map[uint64]bool{} }

// Threads lists the Java threads. It leaves out threads that end during the reading.
func (vm *VM) Threads() ([]Thread, error) {
	l := &vm.l.thread
	if vm.lacks(capThreads) {
		return nil, ErrMissing
	}
	if l.list == 0 {
		return vm.linkedThreads()
	}
	var err error // a list is freed as soon as the JVM has replaced it
	for range 5 {
		var ptrs []byte
		if ptrs, err = vm.threadPointers(); err == nil {
			return vm.readThreads(ptrs)
		}
	}
	return nil, err
}

func (vm *VM) lacks(capability string) bool {
	return slices.ContainsFunc(vm.missing, func(m string) bool { return strings.HasPrefix(m, capability+":") })
}

// threadPointers reads the ThreadsList (runtime/threadSMR.hpp): a length and an array.
func (vm *VM) threadPointers() ([]byte, error) {
	l := &vm.l.thread
	list, err := vm.mem.Ptr(l.list)
	if err != nil || list == 0 {
		return nil, cmp.Or(err, ErrStarting)
	}
	n, err1 := vm.mem.U32(list + uint64(l.listLength))
	array, err2 := vm.mem.Ptr(list + uint64(l.listThreads))
	if err := cmp.Or(err1, err2); err != nil {
		return nil, err
	}
	if n > maxThreads {
		return nil, fmt.Errorf("%w: %d threads", ErrBadThread, n)
	}
	c := &vm.threads
	if cap(c.ptrs) < int(8*n) {
		c.ptrs = make([]byte, 8*n+8*64)
	}
	ptrs := c.ptrs[:8*n]
	if n > 0 {
		if err := vm.mem.Bytes(array, ptrs); err != nil {
			return nil, err
		}
	}
	if again, err := vm.mem.Ptr(l.list); err != nil || again != list {
		return nil, ErrChanged
	}
	return ptrs, nil
}

// readThreads reads the threads to which ptrs points, several with each call.
func (vm *VM) readThreads(ptrs []byte) ([]Thread, error) {
	l := &vm.l.thread
	size := l.end - int(l.begin)
	c := &vm.threads
	c.asked = 0
	if need := min(len(ptrs)/8, threadBatch) * (size + 8); len(c.raw) < need {
		c.raw = make([]byte, need)
	}
	out := make([]Thread, 0, len(ptrs)/8)
	for len(ptrs) > 0 {
		n := min(len(ptrs)/8, threadBatch)
		c.ranges = c.ranges[:0]
		for i := range n {
			addr := word(ptrs[8*i:])
			buf := c.raw[i*(size+8):]
			c.ranges = append(c.ranges,
				process.Range{Addr: addr + uint64(l.begin), Buf: buf[:size:size]},
				process.Range{Addr: addr, Buf: buf[size : size+8 : size+8]}) // the vtable
		}
		vm.t.ReadMany(c.ranges)
		first := len(out)
		for i := range n {
			if c.ranges[2*i].OK && c.ranges[2*i+1].OK {
				t := vm.parseThread(word(ptrs[8*i:]), c.ranges[2*i].Buf)
				t.Compiler = vm.isCompiler(t, word(c.ranges[2*i+1].Buf))
				out = append(out, t)
			}
		}
		vm.readTIDs(out[first:])
		ptrs = ptrs[8*n:]
	}
	return out, nil
}

// parseThread reads a thread from its bytes, which begin at layout.begin. NSTID temporarily has the OSThread's address,
// for readTIDs.
func (vm *VM) parseThread(addr uint64, b []byte) Thread {
	l := &vm.l.thread
	t := Thread{
		Addr:      addr,
		NSTID:     int((l.osThread - l.begin).u64(b)),
		State:     l.states.of((l.state - l.begin).i32(b)),
		StackBase: (l.stackBase - l.begin).u64(b),
		StackSize: (l.stackSize - l.begin).u64(b),
	}
	if l.threadObj.ok() {
		t.obj = (l.threadObj - l.begin).u64(b)
	}
	if t.StackSize > maxStackSize || t.StackSize > t.StackBase {
		t.StackBase, t.StackSize = 0, 0 // not set yet
	}
	return t
}

// readTIDs replaces the OSThreads' addresses in threads with the thread ids, and reads each thread's pthread_self.
func (vm *VM) readTIDs(threads []Thread) {
	c, l := &vm.threads, &vm.l.thread
	c.ranges = c.ranges[:0]
	for i := range threads {
		osThread, buf := uint64(threads[i].NSTID), c.raw[16*i:]
		c.ranges = append(c.ranges, process.Range{Addr: osThread + uint64(l.tid), Buf: buf[:4:4]})
		if l.pthread.ok() {
			c.ranges = append(c.ranges, process.Range{Addr: osThread + uint64(l.pthread), Buf: buf[8:16:16]})
		}
	}
	vm.t.ReadMany(c.ranges)
	each := len(c.ranges) / max(len(threads), 1)
	for i := range threads {
		osThread, of := threads[i].NSTID, c.ranges[each*i:each*(i+1)]
		threads[i].NSTID = 0
		if osThread == 0 || !of[0].OK {
			continue
		}
		if tid := offset(0).i32(of[0].Buf); tid > 0 {
			threads[i].NSTID = int(tid)
			if each > 1 && of[1].OK {
				threads[i].Pthread = word(of[1].Buf)
			}
		}
	}
}

// linkedThreads follows Threads::_thread_list of JDK 8 and 9.
func (vm *VM) linkedThreads() ([]Thread, error) {
	l := &vm.l.thread
	next, err := vm.mem.Ptr(l.head)
	if err != nil {
		return nil, err
	}
	var addrs []uint64
	for seen := map[uint64]bool{}; next != 0 && !seen[next] && len(seen) < maxThreads; {
		seen[next] = true
		addrs = append(addrs, next)
		if next, err = vm.mem.Ptr(next + uint64(l.next)); err != nil {
			break // that thread has just ended, so the rest of the list cannot be found
		}
	}
	ptrs := vm.threads.ptrs[:0]
	for _, addr := range slices.Backward(addrs) { // the oldest first, as in later releases
		ptrs = binary.LittleEndian.AppendUint64(ptrs, addr)
	}
	vm.threads.ptrs = ptrs
	return vm.readThreads(ptrs)
}

// isCompiler recognises compiler threads by their vtable. A vtable is CompilerThread's if the first thread with it has
// a compiler's name. The oldest threads come first, so no thread of the program can pretend by its name to be a
// compiler thread.
func (vm *VM) isCompiler(t Thread, vtable uint64) bool {
	c := &vm.threads
	if is, ok := c.compiler[vtable]; ok {
		return is
	}
	if c.asked++; c.asked > maxNamesAsked {
		return false // try again next time
	}
	name, err := vm.ThreadName(t)
	is := strings.Contains(name, "CompilerThread")
	switch {
	case errors.Is(err, ErrMoved) && name != "": // the name was read during a collection
		return is // try again next time
	case errors.Is(err, ErrMoved):
		// Reading .symtab of libjvm.so takes tens of milliseconds. The functions of a vtable follow offset-to-top and type
		// info (Itanium C++ ABI, 2.5.2).
		sym, err := vm.t.Global(libjvm, "_ZTV14CompilerThread")
		if err != nil {
			return false // try again next time
		}
		is = vtable == sym+16
	case err != nil:
		return false
	}
	if len(c.compiler) < maxVtables {
		c.compiler[vtable] = is
	}
	return is
}
