package vmstructs

import (
	"slices"

	"goprof/process"
	"goprof/process/maybe"
)

// Health reads the state of the JVM: its heap, the bytes that threads allocate, safepoints, the code cache, and
// references that wait. It stops no thread, so each number belongs to a slightly different moment.
//
// A Health has its own scratch memory. One goroutine may use it while another uses the VM from which it was made.
type Health struct {
	vm      *VM // its own VM
	symbols healthSymbols
	virtual *Continuations // nil: this JVM has no virtual threads

	allocations *Allocations
	classes     healthClasses
	states      *search // of virtual threads

	perf   counterArea
	raw    []byte
	ranges []process.Range
}

// NewHealth returns a Health. Looking up its symbols takes most of the time.
func (vm *VM) NewHealth() *Health {
	h := &Health{vm: newVM(vm.t, vm.l)}
	h.vm.lib, h.vm.version, h.vm.missing = vm.lib, vm.version, slices.Clone(vm.missing)
	h.vm.heaps = slices.Clone(vm.heaps)
	h.virtual = vm.NewContinuations()
	h.allocations = h.vm.NewAllocations()
	h.symbols = h.findSymbols()
	return h
}

func (h *Health) Threads() ([]Thread, error) { return h.vm.Threads() }

func (h *Health) Name(t Thread) (string, error) { return h.vm.ThreadName(t) }

// CompiledBy returns the present work of a compiler thread (VM.Compiling).
func (h *Health) CompiledBy(t Thread) (string, bool) { return h.vm.Compiling(t) }

func (h *Health) Collector() string { return h.vm.Collector() }

// Flag returns a flag of the JVM and its present value.
func (h *Health) Flag(name string) (Flag, bool) { return h.vm.Flag(name) }

func (h *Health) JVMArgs() []string { return h.vm.JVMArgs() }

func (h *Health) ThreadCount() maybe.Value[uint64] {
	at := h.vm.l.health.threadCount
	if at == 0 {
		return maybe.Value[uint64]{}
	}
	n, err := h.vm.mem.I32(at)
	return maybe.If(uint64(max(n, 0)), err == nil && n >= 0 && n <= maxThreads)
}

// sizeAt reads a number of bytes from an object. A number above maxHeapBytes counts as not known.
func (h *Health) sizeAt(addr uint64, field offset) maybe.Value[uint64] {
	if addr == 0 || !field.ok() {
		return maybe.Value[uint64]{}
	}
	n, err := h.vm.mem.U64(addr + uint64(field))
	return maybe.If(n, err == nil && n <= maxHeapBytes)
}

func (h *Health) pointerAt(addr uint64, field offset) uint64 { return h.vm.pointer(addr, field) }

// pointer reads a pointer in an object of the VM. It returns 0 if there is no object or no field, or if the pointer is
// null or cannot be read. So code can follow pointers without a check at each step.
func (vm *VM) pointer(addr uint64, field offset) uint64 {
	if addr == 0 || !field.ok() {
		return 0
	}
	p, err := vm.mem.Ptr(addr + uint64(field))
	if err != nil {
		return 0
	}
	return p
}

// between returns the number of bytes between two addresses in an object of the VM.
func (h *Health) between(addr uint64, low, high offset) maybe.Value[uint64] {
	from, to := h.pointerAt(addr, low), h.pointerAt(addr, high)
	return maybe.If(to-from, from != 0 && to >= from && to-from <= maxHeapBytes)
}

// sum adds the terms. The sum is not known if one of the terms is not known.
func sum(terms ...maybe.Value[uint64]) maybe.Value[uint64] {
	total := uint64(0)
	for _, t := range terms {
		n, ok := t.Get()
		if !ok || total+n < total {
			return maybe.Value[uint64]{}
		}
		total += n
	}
	return maybe.Known(total)
}
