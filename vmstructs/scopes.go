package vmstructs

import (
	"encoding/binary"
	"fmt"
	"iter"
	"math"
	"slices"
	"sort"
)

// Scope is one method at a pc of compiled code.
type Scope struct {
	Method *Method
	BCI    int32 // -1: the method's entry, or not known
	Line   int32 // of the method's first bytecode if BCI is -1; 0: the class has no line numbers
}

const (
	// A PcDesc is four ints: the pc's offset in the code, the scope's offset in the scopes, an unused one, flags
	// (code/pcDesc.hpp). PcDescs are sorted. The first (-1) and the last (largest int) only end the search.
	pcDescSize = 16
	maxInline  = 1024 // methods inlined into each other; HotSpot stops at about 15
	noScope    = 0    // the offset that stands for no scope (DebugInformationRecorder::serialized_null)
	maxBCI     = 1 << 16
)

func (d *debugInfo) count() int { return len(d.pcs) / pcDescSize }

func (d *debugInfo) pcOffset(i int) int32 {
	return int32(binary.LittleEndian.Uint32(d.pcs[i*pcDescSize:]))
}

func (d *debugInfo) scopeOffset(i int) int32 {
	return int32(binary.LittleEndian.Uint32(d.pcs[i*pcDescSize+4:]))
}

// at returns the first record whose offset is not below rel. It returns -1 if that is the last one, which only ends the
// table.
func (d *debugInfo) at(rel int32) int {
	n := d.count()
	i := sort.Search(n, func(i int) bool { return d.pcOffset(i) >= rel })
	if i >= n-1 {
		return -1
	}
	return i
}

// find returns the record for a pc that is rel bytes into the code. If own is true, that is the record for exactly that
// pc. Otherwise it is the next record after the pc, because the compiler describes an instruction range by its end.
func (d *debugInfo) find(rel int32, own bool) int {
	if own {
		if i := d.at(rel); i >= 0 && d.pcOffset(i) == rel {
			return i
		}
	}
	if rel == math.MaxInt32 {
		return -1
	}
	return d.at(rel + 1)
}

// HasPcDesc reports whether the compiler has recorded pc: a return address or a safepoint.
func (b *Blob) HasPcDesc(pc uint64) bool {
	if !b.holds(pc) || b.End-b.Begin >= 1<<31 {
		return false
	}
	rel := int32(pc - b.Begin)
	i := b.debug.at(rel)
	return i >= 0 && b.debug.pcOffset(i) == rel
}

// Records lists the pcs that the compiler recorded.
func (b *Blob) Records() iter.Seq[uint64] {
	return func(yield func(uint64) bool) {
		for i := range b.debug.count() {
			rel := b.debug.pcOffset(i)
			if rel >= 0 && b.holds(b.Begin+uint64(rel)) && !yield(b.Begin+uint64(rel)) {
				return
			}
		}
	}
}

// OwnScope returns the method that owns the code, at an unknown bytecode. If the JVM does not export debug information,
// the scope has no line, because it stands for every pc, including those of callers.
func (b *Blob) OwnScope() []Scope {
	s := Scope{Method: b.Method, BCI: -1}
	if b.Method != nil && !b.vm.lacks(capScopes) {
		s.Line = b.Method.Line(-1)
	}
	return []Scope{s}
}

// TellsScopes reports whether the JVM exports the debug information of compiled code.
func (b *Blob) TellsScopes() bool { return b.vm == nil || !b.vm.lacks(capScopes) }

// Scopes returns the methods at pc, the innermost first, the owner of the code last. If own is true, the record of pc
// itself is used, as for a return address. Otherwise, or without such a record, the next record is used. Code without a
// record (leaf methods, and code after a method's last call) has only the owner, with the line of its beginning, as in
// HotSpot (code/scopeDesc.cpp, decode_body: InvocationEntryBci; oops/method.cpp, line_number_from_bci). The record
// before pc is never used: it may belong to other code, because compilers place blocks of code in any order. The slice
// is shared: do not change it.
func (vm *VM) Scopes(b *Blob, pc uint64, own bool) ([]Scope, error) {
	if b.Method == nil || !b.holds(pc) || b.End-b.Begin >= 1<<31 {
		return nil, ErrBadDebugInfo
	}
	i := int32(b.debug.find(int32(pc-b.Begin), own))
	if s, ok := b.scopes[i]; ok {
		return s, nil
	}
	s, err := vm.decodeScopes(b, int(i))
	if err != nil {
		return nil, err
	}
	if b.scopes == nil {
		b.scopes = make(map[int32][]Scope, 4)
	}
	b.scopes[i] = s
	vm.charge(b, 32+16*len(s))
	return s, nil
}

func (vm *VM) charge(b *Blob, cost int) {
	b.bytes += cost
	vm.loaded += uint64(cost)
	if vm.blobs.byAddr[b.Addr] == b {
		if vm.blobs.bytes += cost; vm.blobs.bytes > maxBlobBytes {
			vm.blobs.init()
		}
	}
}

// decodeScopes decodes the scopes of PcDesc i (code/scopeDesc.cpp, decode_body).
func (vm *VM) decodeScopes(b *Blob, i int) ([]Scope, error) {
	if i < 0 || b.debug.scopeOffset(i) == noScope {
		return b.OwnScope(), nil
	}
	var refs [16]scopeRef
	list, err := b.debug.decode(refs[:0], b.debug.scopeOffset(i), vm.l.method.unsigned5X)
	if err != nil {
		return nil, err
	}
	if owner := list[len(list)-1].method; owner != b.Method.Addr {
		return nil, fmt.Errorf("%w: outermost method %#x in the code of %#x", ErrBadDebugInfo, owner, b.Method.Addr)
	}
	if err := vm.findMethods(b, list); err != nil {
		return nil, err
	}
	scopes := make([]Scope, len(list))
	for k, ref := range list {
		m := b.method(ref.method)
		scopes[k] = Scope{m, ref.bci, m.Line(ref.bci)}
	}
	return scopes, nil
}

// InlinedMethod returns the method at an address, which is in b's debug information.
func (vm *VM) InlinedMethod(b *Blob, addr uint64) (*Method, error) {
	if err := vm.findMethods(b, []scopeRef{{method: addr}}); err != nil {
		return nil, err
	}
	return b.method(addr), nil
}

func (b *Blob) method(addr uint64) *Method {
	if addr == b.Method.Addr {
		return b.Method
	}
	return b.methods[addr]
}

// findMethods finds the methods of some scopes of b, and proves each once, because b's methods live as long as b.
// Cached methods are proven by one read.
func (vm *VM) findMethods(b *Blob, list []scopeRef) error {
	var space [16]uint64
	missing := space[:0]
	p := vm.methodProof()
	for _, ref := range list {
		if b.method(ref.method) != nil || slices.Contains(missing, ref.method) {
			continue
		}
		missing = append(missing, ref.method)
		if m := vm.methods.byAddr[ref.method]; m != nil {
			p.Method(m)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	if _, err := p.Check(); err != nil { // drops the data that has changed
		return err
	}
	found := make([]*Method, len(missing))
	for i, addr := range missing {
		found[i] = vm.methods.byAddr[addr]
	}
	if err := vm.loadMethods(missing, found); err != nil {
		return err
	}
	// The methods were read just now. So the code that keeps them alive must still be the same.
	if !vm.holdsTrue(&b.fact) {
		return ErrChanged
	}
	if b.methods == nil {
		b.methods = make(map[uint64]*Method, len(found))
	}
	for i, addr := range missing {
		b.methods[addr] = found[i]
	}
	vm.charge(b, 40*len(found))
	return nil
}

// scopeRef is a scope in HotSpot's form: the address of a method and a bytecode index.
type scopeRef struct {
	method uint64
	bci    int32
}

// decode appends the scopes from the one at offset outwards. Each begins with the offset of its sender, the number of
// its method and its bci plus one. The rest describes variables. Scopes share senders.
func (d *debugInfo) decode(dst []scopeRef, offset int32, x uint8) ([]scopeRef, error) {
	for range maxInline {
		if offset < 0 || int(offset) >= len(d.scopes) {
			return nil, fmt.Errorf("%w: scope at %d of %d bytes", ErrBadDebugInfo, offset, len(d.scopes))
		}
		s := stream{b: d.scopes, pos: int(offset), x: x}
		sender, method, bci := s.u5(), s.u5(), int64(s.u5())-1
		if s.bad || method == 0 || uint64(method) > uint64(len(d.metadata)/8) || bci >= maxBCI {
			return nil, fmt.Errorf("%w: method %d of %d, bci %d", ErrBadDebugInfo, method, len(d.metadata)/8, bci)
		}
		addr := binary.LittleEndian.Uint64(d.metadata[8*(method-1):])
		dst = append(dst, scopeRef{addr, int32(bci)})
		if sender == noScope {
			return dst, nil
		}
		offset = int32(sender)
	}
	return nil, fmt.Errorf("%w: more than %d inlined methods", ErrBadDebugInfo, maxInline)
}
