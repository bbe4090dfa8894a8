package vmstructs

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
)

// BlobKind is the kind of generated code in a blob.
type BlobKind uint8

const (
	OtherBlob             BlobKind = iota
	Nmethod                        // a compiled Java method
	NativeWrapper                  // the wrapper that calls a native method
	MethodHandleIntrinsic          // linkTo*, invokeBasic: a jump, without a frame
	InterpreterBlob
	Adapter // between interpreted and compiled calling conventions
	VtableStub
	StubRoutines
	RuntimeStub
	Safepoint
	Deopt
	UncommonTrap
	Exception // continues in a caller: the code removes its own return address from the stack
	Upcall
)

var blobKindNames = [...]string{"other", "nmethod", "native wrapper", "method handle intrinsic", "interpreter",
	"adapter", "vtable stub", "stub routines", "runtime stub", "safepoint", "deoptimization", "uncommon trap",
	"exception", "upcall"}

func (k BlobKind) String() string {
	if int(k) < len(blobKindNames) {
		return blobKindNames[k]
	}
	return "unknown"
}

// IsNmethod reports whether a blob of that kind belongs to a Java method.
func (k BlobKind) IsNmethod() bool {
	return k == Nmethod || k == NativeWrapper || k == MethodHandleIntrinsic
}

// Blob is one CodeBlob: generated code and HotSpot's facts about it. All callers share a Blob; do not change it.
type Blob struct {
	Kind          BlobKind
	Name          string // the VM's name for it, in valid UTF-8
	Addr          uint64 // of the CodeBlob
	Begin, End    uint64 // its code
	FrameSize     int    // in words, including return address and saved fp; 0 or less: none
	FrameComplete int    // offset from Begin of the first instruction with a whole frame, -1 never

	// Of nmethods only.
	CompileID     int32
	Level         uint8 // compilation level, 1 to 3 C1, 4 C2; 0 for wrappers
	OSR           bool  // entered in the middle of a loop
	EntryBCI      int32 // of an OSR method: the bytecode index of its entry
	EntryPoint    uint64
	VerifiedEntry uint64
	OSREntry      uint64    // 0 unless OSR
	StubBegin     uint64    // the beginning of the exception and deoptimization handlers, 0 if not known
	OrigPC        int32     // offset, from the unextended sp, of the original return pc of a deoptimized frame
	DeoptHandlers [2]uint64 // 0 if there is none
	Method        *Method

	vm         *VM
	debug      debugInfo
	scopes     map[int32][]Scope  // by index of the PcDesc
	methods    map[uint64]*Method // inlined methods: see methodsOf
	oopMaps    uint64             // of an nmethod: the address of its OopMaps, 0 if there are none
	safepoints safepoints
	nullTable  section // of an nmethod: the list of its implicit null checks
	nulls      []nullCheck
	nullsKnown bool
	fact       fact  // the data that identifies the blob, see proof.go
	since      int64 // the time since which the blob is known to exist, see age.go
	bytes      int   // what the blob takes of the cache's budget
}

const (
	maxBlobSize = 64 << 20
	maxBlobName = 256
	maxFrame    = 1 << 20 // in words
	maxCodeCopy = 4 << 20 // bytes that Code copies
)

// Limits of the blob cache. If any of them is exceeded, the cache is emptied, and walks refill it.
const (
	maxBlobs     = 32 << 10
	maxBlobBytes = 24 << 20
	maxSegments  = 256 << 10
	maxBlobNames = 8 << 10 // the interpreter's codelets have about 500
)

// blobCache finds parsed blobs by pc. Blobs begin at segment boundaries, so a pc's segment identifies its blob.
// bySegment is filled as pcs are looked up.
type blobCache struct {
	bySegment map[uint64]*Blob // by pc >> 6, because the smallest segment has 64 bytes
	byAddr    map[uint64]*Blob
	names     map[uint64]string // constant strings in libjvm.so, by address
	bytes     int
	last      *Blob

	window [segmapChunk]byte
	head   []byte    // the block and the blob that were read last
	check  []byte    // buffer of holdsTrue
	parts  [2][]part // of the facts of nmethods (1) and other blobs (0)
}

const cacheShift = 6

func (c *blobCache) init() {
	c.bySegment = map[uint64]*Blob{}
	c.byAddr = map[uint64]*Blob{}
	c.names = map[uint64]string{}
	c.last = nil
	c.bytes = 0
}

func (c *blobCache) evict(b *Blob) {
	if c.byAddr[b.Addr] == b {
		delete(c.byAddr, b.Addr)
		c.bytes -= b.bytes
	}
	for s := b.Begin >> cacheShift; s <= b.End>>cacheShift; s++ {
		if c.bySegment[s] == b {
			delete(c.bySegment, s)
		}
	}
	if c.last == b {
		c.last = nil
	}
}

// holds reports whether pc is in b's code. A return address may be directly after the code, if the last instruction is
// a call.
func (b *Blob) holds(pc uint64) bool { return pc >= b.Begin && pc <= b.End }

// Blob returns the code blob that holds pc. For a cached blob it reads and allocates nothing. A Proof shows whether the
// blob is still the same.
func (vm *VM) Blob(pc uint64) (*Blob, error) {
	if b := vm.blobs.last; b != nil && pc >= b.Begin && pc < b.End {
		return b, nil
	}
	if b := vm.blobs.bySegment[pc>>cacheShift]; b != nil && b.holds(pc) {
		vm.blobs.last = b
		return b, nil
	}
	b, err := vm.findBlob(pc)
	if errors.Is(err, ErrNoBlob) && pc > 0 {
		// If a call is a blob's last instruction, its return address is in the next block.
		if before, err := vm.findBlob(pc - 1); err == nil && before.End == pc {
			b = before
		}
	}
	if b == nil {
		return nil, err
	}
	if len(vm.blobs.bySegment) >= maxSegments {
		clear(vm.blobs.bySegment)
	}
	vm.blobs.bySegment[pc>>cacheShift] = b
	vm.blobs.last = b
	return b, nil
}

// KindAt returns the kind and the name of the blob that holds pc. It reads only the header, and caches nothing.
func (vm *VM) KindAt(pc uint64) (BlobKind, string, error) {
	h, addr, err := vm.blockOf(pc)
	if err != nil {
		return OtherBlob, "", err
	}
	b, _, err := vm.readHeader(h, addr)
	if err != nil || !b.holds(pc) {
		return OtherBlob, "", cmp.Or(err, ErrNoBlob)
	}
	return b.Kind, b.Name, nil
}

// findBlob finds the blob that holds pc. It parses the blob if it is new.
func (vm *VM) findBlob(pc uint64) (*Blob, error) {
	h, block, err := vm.blockOf(pc)
	if err != nil {
		return nil, err
	}
	b, err := vm.blobAt(h, block)
	if err != nil {
		return nil, err
	}
	if !b.holds(pc) {
		return nil, ErrNoBlob // in the blob's header or data
	}
	return b, nil
}

// BlobAt returns the code blob whose header is at addr. HotSpot's own pointers to nmethods point to the header.
func (vm *VM) BlobAt(addr uint64) (*Blob, error) {
	h, block, err := vm.blockOf(addr)
	if err != nil {
		return nil, err
	}
	if block+vm.l.code.blockSize != addr {
		return nil, ErrNoBlob
	}
	return vm.blobAt(h, block)
}

func (vm *VM) blockOf(addr uint64) (h *codeHeap, block uint64, err error) {
	if !vm.InCode(addr) {
		return nil, 0, ErrNoBlob
	}
	if h, err = vm.heapOf(addr); err != nil {
		return nil, 0, err
	}
	block, err = vm.findBlock(h, addr)
	return h, block, err
}

// blobAt returns the blob of the block at addr, from the cache if its fact still holds.
func (vm *VM) blobAt(h *codeHeap, addr uint64) (*Blob, error) {
	blobAddr := addr + vm.l.code.blockSize
	if b := vm.blobs.byAddr[blobAddr]; b != nil {
		if vm.holdsTrue(&b.fact) {
			return b, nil
		}
		vm.blobs.evict(b)
	}
	b, err := vm.readBlob(h, addr)
	if err != nil {
		return nil, err
	}
	if len(vm.blobs.byAddr) >= maxBlobs || vm.blobs.bytes+b.bytes > maxBlobBytes {
		vm.blobs.init()
	}
	vm.blobs.byAddr[b.Addr] = b
	vm.blobs.bytes += b.bytes
	vm.loaded += uint64(b.bytes)
	return b, nil
}

// readHeader reads the block header and the blob after it with one call, and parses the fields that all blobs have.
// head is the bytes that were read. It is valid until the next blob is read.
func (vm *VM) readHeader(h *codeHeap, addr uint64) (b *Blob, head []byte, err error) {
	cl, bl := &vm.l.code, &vm.l.blob
	blockSize := int(cl.blockSize)
	full := blockSize + max(bl.span, vm.l.nm.span)
	head = vm.scratch(min(full, int(min(h.high-addr, 1<<20))))
	if len(head) < max(blockSize+bl.span, cl.blockSpan()) {
		return nil, nil, ErrBadBlob
	}
	if err := vm.mem.Bytes(addr, head); err != nil {
		return nil, nil, err
	}
	blk := vm.parseBlock(h, addr, head)
	if !blk.used {
		return nil, nil, ErrNoBlob
	}
	if blk.size > h.boundary-addr || blk.size > maxBlobSize {
		return nil, nil, fmt.Errorf("%w: block of %#x bytes", ErrBadBlob, blk.size)
	}
	b = &Blob{Addr: addr + cl.blockSize, vm: vm, bytes: 256}
	return b, head, vm.parseHeader(b, head[blockSize:], blk.size)
}

// readBlob reads the header, and the data to which the blob points. Then it checks that the blob has not changed during
// the reading.
func (vm *VM) readBlob(h *codeHeap, addr uint64) (*Blob, error) {
	b, head, err := vm.readHeader(h, addr)
	if err != nil {
		return nil, err
	}
	raw := head[vm.l.code.blockSize:]
	if b.Kind.IsNmethod() {
		if vm.lacks(capNmethods) {
			return nil, ErrMissing
		}
		if len(raw) < vm.l.nm.span {
			return nil, ErrBadBlob
		}
		if err := vm.parseNmethod(b, raw); err != nil {
			return nil, err
		}
	}
	vm.noteBlob(b, vm.parseBlock(h, addr, head))
	if b.Kind.IsNmethod() {
		if err := vm.readNmethod(b, raw); err != nil {
			return nil, err
		}
	}
	if !vm.holdsTrue(&b.fact) {
		return nil, ErrChanged
	}
	b.since = vm.blobSince(b.Kind)
	return b, nil
}

// scratch returns n bytes that are valid until the next blob is read.
func (vm *VM) scratch(n int) []byte {
	if cap(vm.blobs.head) < n {
		vm.blobs.head = make([]byte, n)
	}
	return vm.blobs.head[:n]
}

func (vm *VM) parseHeader(b *Blob, raw []byte, blockSize uint64) error {
	l := &vm.l.blob
	size := uint64(l.length.u32(raw))
	if size < l.size || size > blockSize {
		return fmt.Errorf("%w: blob of %#x bytes in a block of %#x", ErrBadBlob, size, blockSize)
	}
	if l.codeBegin.ok() && l.codeEnd.ok() {
		b.Begin, b.End = l.codeBegin.u64(raw), l.codeEnd.u64(raw)
	} else {
		b.Begin, b.End = b.Addr+uint64(l.codeOffset.u32(raw)), b.Addr+uint64(l.dataOffset.u32(raw))
	}
	if b.Begin < b.Addr || b.End < b.Begin || b.End > b.Addr+size {
		return fmt.Errorf("%w: code from %#x to %#x", ErrBadBlob, b.Begin, b.End)
	}
	b.FrameSize = int(l.frameSize.i32(raw))
	b.FrameComplete = int(l.frameComplete.signed(raw))
	if l.oopMaps.ok() {
		b.oopMaps = l.oopMaps.u64(raw)
	}
	if b.FrameSize > maxFrame {
		return fmt.Errorf("%w: frame of %d words", ErrBadBlob, b.FrameSize)
	}
	name, err := vm.blobName(l.name.u64(raw))
	if err != nil {
		return err
	}
	b.Name = name
	b.Kind = kindOf(name, b.FrameSize)
	// If the VM exports the kind, it is used in place of the name. OtherBlob stands for the VM's wider kinds.
	if l.kind.ok() && b.Kind != Exception {
		if k := l.kinds[raw[l.kind]]; k != OtherBlob {
			b.Kind = k
		}
	}
	return nil
}

// blobName reads a blob's name. Most names are constants in libjvm.so, and are cached by address.
func (vm *VM) blobName(addr uint64) (string, error) {
	if name, ok := vm.blobs.names[addr]; ok {
		return name, nil
	}
	raw, err := vm.mem.CString(addr, maxBlobName)
	if err != nil {
		return "", fmt.Errorf("%w: its name: %w", ErrBadBlob, err)
	}
	name := cleanText(raw)
	if addr >= vm.lib.Start && addr < vm.lib.End {
		if len(vm.blobs.names) >= maxBlobNames {
			clear(vm.blobs.names)
		}
		vm.blobs.names[addr] = name
	}
	return name, nil
}

// kindsByName has the names in code/codeBlob.cpp and in the calls of its constructors, in all releases.
var kindsByName = map[string]BlobKind{"nmethod": Nmethod, "native nmethod": NativeWrapper,
	"Interpreter":      InterpreterBlob,
	"I2C/C2I adapters": Adapter, "adapters": Adapter, "MethodHandles adapters": Adapter,
	"MethodHandlesAdapterBlob": Adapter, "vtable chunks": VtableStub, "SafepointBlob": Safepoint,
	"DeoptimizationBlob": Deopt, "UncommonTrapBlob": UncommonTrap, "ExceptionBlob": Exception, "UpcallStub": Upcall}

func kindOf(name string, frameSize int) BlobKind {
	kind, known := kindsByName[name]
	switch {
	case kind == NativeWrapper && frameSize <= 0:
		return MethodHandleIntrinsic
	case known:
		return kind
	case strings.Contains(name, "unwind_exception"), strings.Contains(name, "rethrow"),
		strings.Contains(name, "handle_exception_from_callee"):
		return Exception // c1/c1_Runtime1_*.cpp, opto/runtime.cpp
	case strings.HasPrefix(name, "StubRoutines"):
		return StubRoutines
	case strings.HasPrefix(name, "polling_page_") && strings.HasSuffix(name, "_handler_blob"):
		return Safepoint
	case strings.HasPrefix(name, "upcall_stub"):
		return Upcall
	case frameSize != 0:
		return RuntimeStub
	}
	return OtherBlob
}

// Code appends a copy of b's code to dst[:0].
func (vm *VM) Code(b *Blob, dst []byte) ([]byte, error) {
	n := b.End - b.Begin
	if n > maxCodeCopy {
		return dst[:0], fmt.Errorf("%w: %d bytes of code", ErrBadBlob, n)
	}
	if uint64(cap(dst)) < n {
		dst = make([]byte, n)
	}
	dst = dst[:n]
	return dst, vm.mem.Bytes(b.Begin, dst)
}
