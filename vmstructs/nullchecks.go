package vmstructs

import (
	"encoding/binary"
	"slices"
)

// nullCheck has the offset at which code continues if the instruction at another offset faults on a null reference.
// HotSpot omits the test of a reference that is used soon (code/exceptionHandlerTable.hpp, ImplicitExceptionTable).
type nullCheck struct{ at, to uint32 }

const maxNullChecks = 1 << 16

// nullChecks reads b's table once. If the table cannot be read, there are no checks.
func (vm *VM) nullChecks(b *Blob) []nullCheck {
	if b.nullsKnown {
		return b.nulls
	}
	b.nullsKnown = true
	s := b.nullTable
	if s.begin == 0 || s.end <= s.begin || s.size() < 4 || s.size() > maxDebugBytes {
		return nil
	}
	n, err := vm.mem.U32(s.begin)
	if err != nil || n == 0 || n > maxNullChecks || uint64(n)*8+4 > s.size() {
		return nil
	}
	raw := make([]byte, n*8)
	if vm.mem.Bytes(s.begin+4, raw) != nil || !vm.holdsTrue(&b.fact) {
		return nil
	}
	checks := make([]nullCheck, n)
	for i := range checks {
		checks[i] = nullCheck{binary.LittleEndian.Uint32(raw[8*i:]), binary.LittleEndian.Uint32(raw[8*i+4:])}
	}
	// If an instruction has several checks, HotSpot uses the first (ImplicitExceptionTable::continuation_offset).
	slices.SortStableFunc(checks, func(a, b nullCheck) int { return int(a.at) - int(b.at) })
	checks = slices.CompactFunc(checks, func(a, b nullCheck) bool { return a.at == b.at })
	b.nulls = checks
	vm.charge(b, 8*len(checks))
	return checks
}

// OnNull returns the offset at which b continues if the instruction at an offset faults on a null reference. ok is
// false if that instruction has no such check.
func (vm *VM) OnNull(b *Blob, at uint32) (to uint32, ok bool) {
	checks := vm.nullChecks(b)
	i, ok := slices.BinarySearchFunc(checks, at, func(c nullCheck, at uint32) int { return int(c.at) - int(at) })
	if !ok {
		return 0, false
	}
	return checks[i].to, true
}

// nullTable returns the place of the table: up to 22 after the exception handlers in the nmethod, since 23 before them
// in the immutable data.
func (vm *VM) nullTable(b *Blob, raw []byte) section {
	l := &vm.l.nm
	switch {
	case !l.nullTable.ok():
		return section{}
	case l.immutable.ok() && l.handlers.ok():
		base := l.immutable.u64(raw)
		return section{base + l.nullTable.unsigned(raw), base + l.handlers.unsigned(raw)}
	case !l.immutable.ok() && l.end.ok():
		return section{b.Addr + l.nullTable.unsigned(raw), b.Addr + uint64(l.end.u32(raw))}
	}
	return section{}
}
