package vmstructs

import (
	"fmt"

	"goprof/process"
)

// Generous bounds: HotSpot does not compile methods of more than 8,000 bytecodes, and limits inlining.
const (
	maxDebugBytes = 8 << 20 // of all sections
	maxCompileID  = 1 << 30
)

// parseNmethod parses the plain fields of an nmethod (code/nmethod.hpp).
func (vm *VM) parseNmethod(b *Blob, raw []byte) error {
	l := &vm.l.nm
	b.CompileID = l.compileID.i32(raw)
	b.Level = raw[l.level]
	b.EntryBCI = l.entryBCI.i32(raw)
	b.OSR = b.EntryBCI != l.noEntryBCI
	b.OrigPC = l.origPC.i32(raw)
	if b.CompileID < 0 || b.CompileID > maxCompileID {
		return fmt.Errorf("%w: compile id %d", ErrBadBlob, b.CompileID)
	}
	if l.verified.ok() {
		b.VerifiedEntry = l.verified.u64(raw)
		if l.entry.ok() {
			b.EntryPoint = l.entry.u64(raw)
		}
	} else if l.verifiedOff.ok() {
		b.VerifiedEntry = b.Begin + l.verifiedOff.unsigned(raw)
		if l.entryOff.ok() {
			b.EntryPoint = b.Begin + l.entryOff.unsigned(raw)
		}
	}
	if b.OSR && l.osrEntry.ok() {
		b.OSREntry = l.osrEntry.u64(raw)
	}
	if l.stub.ok() {
		b.StubBegin = b.within(b.Addr + uint64(l.stub.u32(raw)))
	}
	b.nullTable = vm.nullTable(b, raw)
	b.VerifiedEntry, b.EntryPoint, b.OSREntry = b.within(b.VerifiedEntry), b.within(b.EntryPoint), b.within(b.OSREntry)
	for i := range b.DeoptHandlers {
		switch {
		case l.deoptPtr[i].ok():
			b.DeoptHandlers[i] = b.within(l.deoptPtr[i].u64(raw))
		case l.deopt[i].ok():
			b.DeoptHandlers[i] = b.within(b.Addr + uint64(int64(l.deopt[i].i32(raw))))
		}
	}
	return nil
}

// within returns addr if it is in b's code, otherwise 0. A handler that the method does not need has offset -1, or the
// address before the nmethod.
func (b *Blob) within(addr uint64) uint64 {
	if addr < b.Begin || addr > b.End {
		return 0
	}
	return addr
}

// debugInfo is the compiler's debug information in HotSpot's form: PcDescs, the scopes to which they point, and the
// methods to which the scopes refer by number.
type debugInfo struct {
	pcs      []byte
	scopes   []byte
	metadata []byte
}

// section is an address range of an nmethod's data.
type section struct{ begin, end uint64 }

func (s section) size() uint64 { return s.end - s.begin }

// readNmethod reads the debug information and the method.
func (vm *VM) readNmethod(b *Blob, raw []byte) error {
	methodAddr := vm.l.nm.method.u64(raw)
	if methodAddr == 0 {
		return fmt.Errorf("%w: its method is unloaded", ErrBadBlob)
	}
	if b.Kind == Nmethod {
		if err := vm.readDebugInfo(b, raw); err != nil {
			return err
		}
	}
	m, err := vm.MethodNow(methodAddr)
	if err != nil {
		return err
	}
	b.Method = m
	return nil
}

// readDebugInfo finds the sections and reads them in one go.
func (vm *VM) readDebugInfo(b *Blob, raw []byte) error {
	pcs, scopes, metadata, ok := vm.sections(b, raw)
	if !ok {
		return nil // not exported: for such a JVM there are no inlined frames
	}
	for _, s := range []section{pcs, scopes, metadata} {
		if s.begin > s.end || s.size() > maxDebugBytes {
			return fmt.Errorf("%w: section from %#x to %#x", ErrBadBlob, s.begin, s.end)
		}
	}
	if pcs.size()%pcDescSize != 0 {
		return fmt.Errorf("%w: %d bytes of PcDescs", ErrBadBlob, pcs.size())
	}
	n := pcs.size() + scopes.size() + metadata.size()
	if n > maxDebugBytes {
		return fmt.Errorf("%w: %d bytes of debug information", ErrBadBlob, n)
	}
	all := make([]byte, n)
	b.bytes += int(n)
	d := &b.debug
	d.pcs, all = all[:pcs.size():pcs.size()], all[pcs.size():]
	d.scopes, d.metadata = all[:scopes.size():scopes.size()], all[scopes.size():]
	ranges := []process.Range{
		{Addr: pcs.begin, Buf: d.pcs}, {Addr: scopes.begin, Buf: d.scopes}, {Addr: metadata.begin, Buf: d.metadata},
	}
	vm.t.ReadMany(ranges)
	for i := range ranges {
		if !ranges[i].OK && len(ranges[i].Buf) > 0 {
			return fmt.Errorf("reading debug information: %w", process.ErrFault)
		}
	}
	return nil
}

// sections returns the places of an nmethod's PcDescs, scopes and metadata. Up to 22 they follow the code, metadata
// first. Since 23 PcDescs and scopes are in the C heap (the immutable data). Since 25 the metadata are in another block
// of the C heap, after the relocations.
func (vm *VM) sections(b *Blob, raw []byte) (pcs, scopes, metadata section, ok bool) {
	l, bl := &vm.l.nm, &vm.l.blob
	blobEnd := b.Addr + uint64(bl.length.u32(raw))
	switch {
	case l.immutable.ok() && l.immutableSize.ok() && l.scopesPCs.ok() && l.scopesData.ok():
		base := l.immutable.u64(raw)
		pcs = section{base + uint64(l.scopesPCs.u32(raw)), base + uint64(l.scopesData.u32(raw))}
		scopes = section{pcs.end, base + uint64(l.immutableSize.u32(raw))}
		switch {
		case bl.mutable.ok() && bl.mutableSize.ok() && bl.relocSize.ok():
			base := bl.mutable.u64(raw)
			metadata = section{base + uint64(bl.relocSize.u32(raw)), base + uint64(bl.mutableSize.u32(raw))}
		case l.metadata.ok() && l.metadata.width == 2 && bl.dataOffset.ok(): // 23, 24
			metadata = section{b.Addr + uint64(bl.dataOffset.u32(raw)) + l.metadata.unsigned(raw), blobEnd}
		case l.metadata.ok():
			metadata = section{b.Addr + l.metadata.unsigned(raw), blobEnd}
		default:
			return pcs, scopes, metadata, false
		}
		metadata.end -= metadata.size() % 8
		return pcs, scopes, metadata, true
	case l.scopesPCs.ok() && l.dependencies.ok() && l.metadata.ok() && (l.scopesData.ok() || l.scopesDataPtr.ok()):
		pcs = section{b.Addr + uint64(l.scopesPCs.u32(raw)), b.Addr + uint64(l.dependencies.u32(raw))}
		if l.scopesDataPtr.ok() {
			scopes.begin = l.scopesDataPtr.u64(raw)
		} else {
			scopes.begin = b.Addr + uint64(l.scopesData.u32(raw))
		}
		scopes.end = pcs.begin
		metadata = section{b.Addr + l.metadata.unsigned(raw), scopes.begin}
		metadata.end -= metadata.size() % 8
		if pcs.end > blobEnd || scopes.begin < b.Addr {
			pcs.end = 0 // not in the blob; the caller refuses it
		}
		return pcs, scopes, metadata, true
	}
	return pcs, scopes, metadata, false
}
