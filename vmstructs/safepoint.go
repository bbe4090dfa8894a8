package vmstructs

import (
	"strings"

	"goprof/process"
	"goprof/process/maybe"
)

// SafepointState is SafepointSynchronize::SynchronizeState (runtime/safepoint.hpp), the same in all releases.
type SafepointState int32

const (
	NotSynchronized SafepointState = 0
	Synchronizing   SafepointState = 1 // the VM thread waits until all threads have stopped
	Synchronized    SafepointState = 2
	Polled          SafepointState = 3 // one of these two states, if libjvm.so has no symbols
)

// healthSymbols are the addresses of variables of libjvm.so that only its .symtab names. They are 0 if there is none.
type healthSymbols struct {
	safepoint, operation  uint64
	compile               uint64 // CompileBroker::_should_compile_new_jobs
	outOfMemory, overflow []uint64
	pending               uint64 // Universe::_reference_pending_list
	operations            map[uint64]string
	queues                []uint64 // CompileBroker::_c1_compile_queue and _c2_compile_queue
	began                 uint64   // initial_time_count (os_linux.cpp, os_posix.cpp)
}

// findSymbols looks up the symbols. A libjvm.so without .symtab (8 of Debian) has none.
func (h *Health) findSymbols() (s healthSymbols) {
	find := h.vm.global
	findAll := func(names ...string) (all []uint64) {
		for _, name := range names {
			if at := find(name); at != 0 {
				all = append(all, at)
			}
		}
		return all
	}
	if s.safepoint = find("_ZN20SafepointSynchronize6_stateE"); s.safepoint == 0 {
		return s // the others are missing, too
	}
	s.operation = find("_ZN8VMThread17_cur_vm_operationE")
	s.compile = find("_ZN13CompileBroker24_should_compile_new_jobsE")
	s.pending = find("_ZN8Universe23_reference_pending_listE")
	s.outOfMemory = findAll("_ZN10Exceptions37_out_of_memory_error_java_heap_errorsE",
		"_ZN10Exceptions37_out_of_memory_error_metaspace_errorsE",
		"_ZN10Exceptions43_out_of_memory_error_class_metaspace_errorsE")
	s.overflow = findAll("_ZN10Exceptions22_stack_overflow_errorsE")
	s.queues = findAll("_ZN13CompileBroker17_c1_compile_queueE", "_ZN13CompileBroker17_c2_compile_queueE")
	s.began = find("_ZL18initial_time_count")
	s.operations = h.findOperations()
	return s
}

type symbolLister interface {
	Globals(image, prefix string, most int) (map[uint64]string, error)
}

const (
	// operationTables is the beginning of the linkage name of a VM operation's vtable. The full name is _ZTV, the length
	// of the operation's name, and VM_...
	operationTables = "_ZTV"
	maxOperations   = 1 << 12
	// vtableHead is the size of the data before the functions in a vtable (Itanium C++ ABI, 2.5.2). An object points to
	// the first function.
	vtableHead = 16
)

// findOperations returns the names of operations by the first word of an operation, the address in its vtable.
func (h *Health) findOperations() map[uint64]string {
	lister, ok := h.vm.t.(symbolLister)
	if !ok {
		return nil
	}
	tables, err := lister.Globals(libjvm, operationTables, maxOperations)
	if err != nil {
		return nil
	}
	found := map[uint64]string{}
	for addr, symbol := range tables {
		if name, ok := operationName(symbol); ok {
			found[addr+vtableHead] = name
		}
	}
	return found
}

// operationName converts "_ZTV25VM_G1CollectForAllocation" to "G1CollectForAllocation".
func operationName(symbol string) (string, bool) {
	rest := symbol[min(len(operationTables), len(symbol)):]
	name, ok := strings.CutPrefix(strings.TrimLeft(rest, "0123456789"), "VM_")
	if !ok || name == "" || rest[0] == 'V' {
		return "", false
	}
	return name, true
}

// Safepoint reports whether the JVM is now stopping all threads, or has stopped them.
func (h *Health) Safepoint() maybe.Value[SafepointState] {
	if h.symbols.safepoint == 0 {
		return h.polled()
	}
	state, err := h.vm.mem.I32(h.symbols.safepoint)
	s := SafepointState(state)
	return maybe.If(s, err == nil && s >= NotSynchronized && s <= Synchronized)
}

// polled reads the state from the page that compiled code reads at each safepoint poll. JDK 8 makes that page
// unreadable right after it has asked the threads to stop (runtime/safepoint.cpp, SafepointSynchronize::begin), and
// readable as the first step at the end of the safepoint. Later releases have a poll for each thread.
func (h *Health) polled() maybe.Value[SafepointState] {
	variable := h.vm.l.health.polling
	if !h.vm.l.jdk8 || variable == 0 {
		return maybe.Value[SafepointState]{}
	}
	page, err := h.vm.mem.Ptr(variable)
	if err != nil || page == 0 {
		return maybe.Value[SafepointState]{}
	}
	// The variable is read right after the page. If it cannot be read either, no memory of the target can be read.
	var word [2][8]byte
	ranges := []process.Range{{Addr: page, Buf: word[0][:]}, {Addr: variable, Buf: word[1][:]}}
	h.vm.t.ReadMany(ranges)
	if ranges[0].OK {
		return maybe.Known(NotSynchronized)
	}
	return maybe.If(Polled, ranges[1].OK)
}

// Operation returns the name of the operation that the VM thread executes now, empty if there is none.
func (h *Health) Operation() maybe.Value[string] {
	if h.symbols.operation == 0 || len(h.symbols.operations) == 0 {
		return maybe.Value[string]{}
	}
	op, err := h.vm.mem.Ptr(h.symbols.operation)
	if err != nil {
		return maybe.Value[string]{}
	}
	if op == 0 {
		return maybe.Known("")
	}
	table, err := h.vm.mem.Ptr(op) // op is on the stack of a thread that waits for it, or in the C heap
	if err != nil {
		return maybe.Value[string]{}
	}
	name, ok := h.symbols.operations[table]
	return maybe.If(name, ok)
}

// Moves reports whether a safepoint waits for a thread in that state: the thread runs Java code or the VM's own, or is
// changing its state (runtime/safepoint.cpp, safepoint_safe_with).
func (s ThreadState) Moves() bool { return s&^1 != StateBlocked && s != StateInNative && s != StateNew }

// OutOfMemory counts the OutOfMemoryErrors that the VM has thrown, and Overflows the StackOverflowErrors
// (utilities/exceptions.hpp).
func (h *Health) OutOfMemory() maybe.Value[uint64] { return h.sumOf(h.symbols.outOfMemory) }

func (h *Health) Overflows() maybe.Value[uint64] { return h.sumOf(h.symbols.overflow) }

func (h *Health) sumOf(variables []uint64) maybe.Value[uint64] {
	if len(variables) == 0 {
		return maybe.Value[uint64]{}
	}
	total := uint64(0)
	for _, at := range variables {
		n, err := h.vm.mem.I32(at)
		if err != nil || n < 0 {
			return maybe.Value[uint64]{}
		}
		total += uint64(n)
	}
	return maybe.Known(total)
}

// ReadFrom sets another Target of the same process, from which memory is read from now on.
func (h *Health) ReadFrom(t process.Target) *Health {
	h.vm.setMemory(t)
	h.virtual.ReadFrom(t)
	return h
}
