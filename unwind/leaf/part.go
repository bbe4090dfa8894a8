package leaf

import (
	"goprof/arch"
	"goprof/vmstructs"
)

// Several instructions are made for one thing that the compiler has told: a check, an allocation, a poll, or the end of
// the method that owns the code. Such an instruction tells the methods at itself. Most are no evidence for the code
// around: as evidence, they would have the work of their bytecode begin anew behind them.

// partAt returns the evidence of the call, the check, the allocation or the poll that an instruction is part of.
func (p *place) partAt(n int32) evidence {
	if n < 0 || int(n) >= len(p.code.list) {
		return evidence{}
	}
	if pc := p.markAt(n); pc != 0 {
		return evidence{kind: atCall, scope: pc}
	}
	if p.blob.Level != levelC2 {
		if p.leavesAt(n) { // methods that are inlined go on in their callers
			return evidence{kind: atReturn}
		}
		return p.castAt(n)
	}
	if e := p.classAt(n); e.kind != noEvidence {
		return e
	}
	if e := p.evidenceAt(n); e.kind != noEvidence && e.kind != atReturn {
		return e
	}
	if e := p.pollAt(n); e.kind != noEvidence {
		return e
	}
	if p.leavesAt(n) {
		return evidence{kind: atReturn}
	}
	return p.allocationAt(n)
}

// maxCallMark bounds the instructions of a mark: arm64 has three.
const maxCallMark = 3

// markAt returns the call's return address if an instruction is part of the mark behind a call, which is part of the
// call (since 19; cpu/x86/macroAssembler_x86.cpp and cpu/aarch64/macroAssembler_aarch64.cpp, post_call_nop): a nop that
// has data in the place of a displacement, on arm64 a nop and two instructions that put data nowhere. 0: it is not.
func (p *place) markAt(n int32) (pc uint64) {
	m := p.code
	for range maxCallMark {
		if n < 0 || int(n) >= len(m.list) || m.list[n].kindOf != arch.KindNop || m.list[n].disp == 0 {
			return 0
		}
		before := m.before(n)
		if before != notInCode && m.list[before].flow == arch.FlowCall {
			if pc = p.blob.Begin + uint64(m.list[n].at); p.blob.HasPcDesc(pc) {
				return pc
			}
			return 0
		}
		n = before
	}
	return 0
}

// maxPoll bounds the instructions from the load of what a poll reads to the poll.
const maxPoll = 4

// pollAt returns the evidence of the poll before which an instruction loads what the poll reads. Other instructions may
// stand between them, but the load's register is the poll's.
func (p *place) pollAt(n int32) evidence {
	m := p.code
	if i := m.list[n]; i.base != arch.BaseThread || i.flow != arch.FlowNext {
		return evidence{}
	}
	load, _ := m.operands(n)
	for at, k := m.next(n), 0; at != notInCode && k < maxPoll; at, k = m.next(at), k+1 {
		if e := p.evidenceAt(at); e.kind == atPoll {
			if o, ok := m.operands(at); k == 0 || ok && o.Reads&load.Writes != 0 {
				return e
			}
			break
		}
		if o, ok := m.operands(at); !ok || (o.Writes|o.Reads)&load.Writes != 0 || m.list[at].flow != arch.FlowNext {
			break
		}
	}
	return evidence{}
}

// maxLeave bounds the instructions that leave a method: two that take down the frame, the poll, its branch, the return.
const maxLeave = 6

// leavesAt reports whether an instruction is one of those that leave the method which owns the code: from the one that
// takes down the frame to the return (x86.ad and aarch64.ad, MachEpilogNode).
func (p *place) leavesAt(n int32) bool {
	m := p.code
	leaves := m.list[n].kindOf == arch.KindLeave
	for at, k := n, 0; !leaves && at != notInCode && k < maxLeave; k++ {
		at = m.before(at)
		if at == notInCode || m.list[at].flow != arch.FlowNext && m.list[at].flow != arch.FlowBranch {
			break
		}
		leaves = m.list[at].kindOf == arch.KindLeave
	}
	if !leaves {
		return false
	}
	for at, k := n, 0; at != notInCode && k < maxLeave; at, k = m.next(at), k+1 {
		switch m.list[at].flow {
		case arch.FlowReturn:
			return true
		case arch.FlowNext, arch.FlowBranch:
		default:
			return false
		}
	}
	return false
}

// maxAllocation bounds the instructions from where an allocation asks for room to the branch to its slow path, and
// from there to where the allocation is done.
const maxAllocation = 12

// allocationAt returns the evidence of the allocation that an instruction is part of. C2 makes an object in the
// thread's own buffer (opto/macro.cpp, expand_allocate_common): it loads where the buffer has room, compares with the
// buffer's end, branches to the slow path, notes how much room is left, and prefetches memory for the next objects.
// So the slow path is that of the load ahead, or that of the note or the prefetch before. Another allocation may follow
// at once: what stands behind the note and before the next load belongs to neither.
func (p *place) allocationAt(n int32) evidence {
	m := p.code
	if i := &m.list[n]; i.kindOf == arch.KindPrefetch || p.filling(i) == notesRoom || p.headerAt(n) {
		return p.allocation(n, m.before)
	}
	at := n
	for range maxAllocation {
		if at == notInCode || m.list[at].flow != arch.FlowNext {
			break
		}
		switch p.filling(&m.list[at]) {
		case asksForRoom:
			return p.allocation(n, m.next)
		case notesRoom:
			return evidence{}
		}
		at = m.before(at)
	}
	return evidence{}
}

// headerAt reports whether an instruction writes the header of a new object: the first word, or the class. Compilers
// write both for an allocation alone. A byte is not of a header: it may be a card of the collector's.
func (p *place) headerAt(n int32) bool {
	m := p.code
	i := &m.list[n]
	if !i.stores || i.byte || i.indexed || i.base != arch.BaseOther {
		return false
	}
	if i.disp != 0 && (i.disp != maxHeader || p.vm.CompactHeaders()) {
		return false
	}
	for range maxAllocation {
		if n = m.before(n); n == notInCode || m.list[n].flow != arch.FlowNext || len(m.jumpsTo(n)) > 0 {
			return false
		}
		if p.filling(&m.list[n]) == notesRoom {
			return true
		}
	}
	return false
}

// fillingOf is what an instruction has to do with how far the thread's buffer is filled.
type fillingOf uint8

const (
	noFilling   fillingOf = iota
	asksForRoom           // before the branch to the slow path
	notesRoom             // behind it
)

// filling tells whether an instruction reads or writes how far the thread's buffer is filled.
func (f *Finder) filling(i *instruction) fillingOf {
	switch {
	case i.base != arch.BaseThread || i.disp == 0 || i.disp != f.vm.AllocationTop() || i.flow != arch.FlowNext:
		return noFilling
	case i.stores:
		return notesRoom
	}
	return asksForRoom
}

// allocation returns the evidence of the branch to the slow path of an allocation, ahead of an instruction or before
// it.
func (p *place) allocation(n int32, step func(int32) int32) evidence {
	for range maxAllocation {
		if n = step(n); n == notInCode {
			break
		}
		if f := p.code.list[n].flow; f == arch.FlowNext {
			continue
		} else if f != arch.FlowBranch {
			break
		}
		if e := p.evidenceAt(n); e.kind == atCheck && p.allocates(e) {
			return e
		}
		break
	}
	return evidence{}
}

// allocates reports whether evidence is that of a bytecode that makes an object.
func (p *place) allocates(e evidence) bool {
	s := p.told(e)
	if s == nil {
		return false
	}
	code := p.bytecodes(s[0].Method)
	i := vmstructs.BytecodeAt(code, s[0].BCI)
	return i >= 0 && (code[i].Allocates() || isInvoke(code[i].Op))
}
