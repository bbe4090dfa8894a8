package vmstructs

import (
	"errors"
	"fmt"
	"slices"

	"goprof/arch"
	"goprof/process"
)

// VM is HotSpot inside a target. It has caches and scratch memory without locks, so one goroutine at a time may use it.
type VM struct {
	t       process.Target
	mem     *process.Reader
	near    *process.Reader // reader of nearby
	nearby  *nearMemory
	l       *layout
	lib     process.Image
	missing []string
	version Version

	heaps    []codeHeap
	code     span64 // reserved bounds of the code cache
	interp   span64 // the interpreter's codelets
	codelets []Codelet
	stubs    stubTable
	callRet  uint64

	blobs   blobCache
	methods methodCache
	flagTab flagTable
	// compact and lengthAt are the results of CompactHeaders and ArrayLength, if headersKnown.
	compact, headersKnown bool
	lengthAt              int32
	// scales and basedHeap are the results of ScalesReferences and HeapHasBase, if scalesKnown.
	scales, basedHeap, scalesKnown bool
	java                           javaFields
	objects                        objectModel
	threads                        threadCache
	heapReads                      heapReads
	globals                        map[string]uint64 // addresses of variables in libjvm.so; see global

	barrier uint64 // the address to which the lowest frames of virtual threads return; 0: not searched yet
	derived offset // JavaThread::_cont_entry if it is not exported; 0: not searched yet
	contRet uint64 // ContinuationEntry::_return_pc
	proofs  uint64 // generation of the last Proof that was reset
	clock   func() int64
	unloads unloads

	sightings *Sightings          // the notes in use; nil: no notes are made
	sighted   map[uint64]sighting // by block
	loaded    uint64              // bytes, see Loaded
}

// span64 is an address range [begin, end).
type span64 struct{ begin, end uint64 }

func (s span64) has(addr uint64) bool { return addr-s.begin < s.end-s.begin }

const libjvm = "libjvm.so"

// Open finds HotSpot in t and reads its tables.
func Open(t process.Target) (*VM, error) {
	lib, ok := t.Image(libjvm)
	if !ok {
		return nil, notHotSpot(t)
	}
	tab, err := readTables(t, func(symbol string) (uint64, error) { return t.Global(libjvm, symbol) })
	if err != nil {
		if errors.Is(err, ErrNotHotSpot) {
			return nil, notHotSpot(t)
		}
		return nil, err
	}
	l, r := resolve(tab)
	if lost := r.essentials(); len(lost) > 0 {
		return nil, &Unsupported{lost}
	}
	if l.blob.name == 0 && l.blob.length == 0 {
		return nil, ErrStarting // libjvm.so's C++ initialisers have not run yet
	}
	vm := newVM(t, l)
	vm.lib = lib
	if err := vm.readVersion(); err != nil {
		return nil, err
	}
	if vm.version.zero() {
		return nil, ErrZero
	}
	if err := vm.openCodeCache(); err != nil {
		return nil, err
	}
	if err := vm.openStubs(); err != nil {
		return nil, err
	}
	vm.l.method.unsigned5X = excludedByte(vm.version.Major, l.method.fieldStream.ok())
	vm.missing = r.report()
	return vm, nil
}

func newVM(t process.Target, l *layout) *VM {
	vm := &VM{l: l, globals: map[string]uint64{}}
	vm.setMemory(t)
	vm.blobs.init()
	vm.methods.init()
	vm.threads.init()
	return vm
}

// essentials lists the missing fields of the essential capabilities.
func (r *resolver) essentials() []string {
	var lost []string
	for _, c := range essential {
		lost = append(lost, r.missing[c]...)
	}
	return lost
}

// notHotSpot returns the error for a target that is not HotSpot. It says what the target is, if its images show that.
func notHotSpot(t process.Target) error {
	if _, ok := t.Image("libj9vm29.so"); ok {
		return fmt.Errorf("%w: this is OpenJ9", ErrNotHotSpot)
	}
	if _, ok := t.Image("libjvm.so"); ok {
		return fmt.Errorf("%w: its libjvm.so exports no tables", ErrNotHotSpot)
	}
	for _, launcher := range []string{"libjli.so", "java"} {
		if _, ok := t.Image(launcher); ok {
			// The launcher maps libjvm.so soon after it has begun.
			return fmt.Errorf("%w: no libjvm.so yet", ErrStarting)
		}
	}
	return fmt.Errorf("%w: it has no libjvm.so (a native image has none either)", ErrNotHotSpot)
}

// Missing lists the capabilities for which this JVM lacks fields, each with those fields.
func (vm *VM) Missing() []string { return slices.Clone(vm.missing) }

// Java returns the registers that have a fixed meaning in this JVM's generated code.
func (vm *VM) Java() arch.JavaRegs {
	cpu := vm.t.CPU()
	java := cpu.Java
	var code [arch.MaxSenderSP]byte
	if !cpu.SenderSPVaries || vm.callRet == 0 || vm.mem.Bytes(vm.callRet-uint64(len(code)), code[:]) != nil {
		return java
	}
	if reg, ok := cpu.SenderSP(code[:]); ok {
		java.SenderSP = reg
	}
	return java
}

// excludedByte returns the X of UNSIGNED5 (see unsigned5.go): 1 since 20, which writes no zero bytes (JDK-8292758,
// utilities/unsigned5.hpp), 0 up to 19 (code/compressedStream.hpp). A JVM with a field stream is 21 or later.
func excludedByte(major int, fieldStream bool) uint8 {
	if fieldStream || major >= 20 {
		return 1
	}
	return 0
}

// Loaded returns the number of bytes of blobs and methods that were read into the caches so far. So a caller that keeps
// pointers to Blobs and Methods can bound their memory, even after the caches have dropped them.
func (vm *VM) Loaded() uint64 { return vm.loaded }

// Forget empties the caches of code and methods. They are read again when they are needed.
func (vm *VM) Forget() {
	vm.blobs.init()
	vm.methods.init()
}

// Library is the file name of the VM's own library.
func (vm *VM) Library() string { return vm.lib.Name }
