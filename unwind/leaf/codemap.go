package leaf

import (
	"iter"
	"slices"

	"goprof/arch"
	"goprof/vmstructs"
)

// codeMap is an nmethod's decoded code: its instructions and jumps. Code is decoded when a search for evidence first
// reaches it. Decoding begins at the last record before the code, because an instruction begins at each record. A
// codeMap keeps the decoded code and the evidence of each instruction, because the routes from several pcs have much in
// common.
type codeMap struct {
	cpu    *arch.CPU
	code   []byte
	chunks []chunk
	// list has the decoded instructions. Those of a chunk are in order. A place is an index in list.
	list  []instruction
	jumps jumpTable
	// pieces are the pieces that C2 made for intrinsic methods, in order.
	pieces []piece
	tree   inlining
	// calls has the records that may be records of calls.
	calls vmstructs.SiteIndex
	// looked counts the calls whose targets were read: see recordedCallee.
	looked int
	// alone: nothing is inlined into the code. Valid if aloneKnown is set.
	alone, aloneKnown bool
	charged           int // its part of Finder.mapped beyond its code
}

// chunk is the code from one record to the next.
type chunk struct {
	begin    uint32
	first, n int32 // the places of its instructions; n is 0 until they are decoded
}

type instruction struct {
	at     uint32
	to     uint32 // the target of a branch or a jump, if jumps is set
	disp   int32  // as in arch.Inst, like arg, swaps, stores, kindOf, base, shift, widens, byte, loads, indexed, narrow
	arg    int32
	record uint32
	len    uint8
	flow   arch.Flow
	kind   evidenceKind
	// filled: the instruction's own evidence is filled in: the fields kind, record, field, reason and outer.
	filled, field bool
	jumps         bool // it jumps to a known target in this code
	swaps         bool
	stores        bool
	kindOf        arch.Kind
	reason        vmstructs.TrapReason
	outer         uint8 // as in evidence
	base          arch.Base
	shift         uint8
	widens        bool
	byte          bool
	loads         bool
	indexed       bool
	narrow        bool
	begins        bool // it is the first of its chunk
	ends          bool // it is the last of its chunk
}

const instructionSize = 40

// notInCode is the place of no instruction.
const notInCode = -1

// flowUnknown is the Flow of bytes that are data or an unknown instruction.
const flowUnknown arch.Flow = 0xff

// maxMapped bounds the code of all codeMaps together. A codeMap takes some 8 bytes for each byte of code (perByte) if
// all of it is decoded. goprof needs a codeMap only when it first sees a pc, so it keeps few.
const maxMapped, perByte = 2 << 20, 8

// maxListed bounds the instructions of a codeMap. Code of compilers has fewer.
const maxListed = maxMapped / 2

// A list begins with room for one instruction in roomFor bytes of the code, but at least leastListed and at most
// mostRoom. The room avoids copies of a growing list. perByte includes it.
const leastListed, roomFor, mostRoom = 128, 8, 512

// mapCode returns the codeMap of an nmethod, which it makes at the first call.
func (f *Finder) mapCode(b *vmstructs.Blob) *codeMap {
	if m, ok := f.codeMaps[b]; ok {
		f.charge(m)
		return m
	}
	n := int(min(b.End-b.Begin, maxMapped+1))
	if f.mapped += n + 64; f.mapped > maxMapped {
		f.codeMaps, f.mapped = make(map[*vmstructs.Blob]*codeMap), n
	}
	m := &codeMap{cpu: f.cpu}
	f.codeMaps[b] = m
	if n > maxMapped {
		return m
	}
	if code, err := f.vm.Code(b, nil); err == nil {
		m.begin(code, b.Begin, b.Records())
	}
	return m
}

// charge counts the memory of a map beyond perByte.
func (f *Finder) charge(m *codeMap) {
	size := max(m.size()/perByte-len(m.code), 0)
	f.mapped += size - m.charged
	m.charged = size
}

// settle charges a map that may have grown, and drops all maps if they are too large together.
func (f *Finder) settle(b *vmstructs.Blob, m *codeMap) {
	if f.codeMaps[b] != m {
		return // the map was dropped meanwhile
	}
	if f.charge(m); f.mapped > maxMapped {
		f.codeMaps, f.mapped = make(map[*vmstructs.Blob]*codeMap), 0
	}
}

func (m *codeMap) size() int {
	n := len(m.code) + 12*cap(m.chunks) + instructionSize*cap(m.list) + m.jumps.size() + pieceSize*cap(m.pieces)
	if m.tree != nil {
		n += m.tree.Size() + m.calls.Size()
	}
	return n
}

// begin divides code, which is at the address base, into chunks, and finds its pieces.
func (m *codeMap) begin(code []byte, base uint64, records iter.Seq[uint64]) {
	m.code = code
	m.chunks = append(m.chunks, chunk{})
	last := uint32(0)
	for pc := range records {
		if at := pc - base; at > uint64(last) && at < uint64(len(code)) {
			last = uint32(at)
			m.chunks = append(m.chunks, chunk{begin: last})
		}
	}
	m.findPieces()
}

// chunkAt returns the number of the chunk at an offset.
func (m *codeMap) chunkAt(at uint32) int {
	low, high := 0, len(m.chunks) // by hand, also in place: callbacks would take a tenth of the time
	for low < high {
		if mid := int(uint(low+high) / 2); m.chunks[mid].begin <= at {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return low - 1
}

// decoded returns the instructions of a chunk, and decodes the chunk at its first use.
func (m *codeMap) decoded(number int) []instruction {
	c := &m.chunks[number]
	if c.n == 0 {
		m.decode(number)
	}
	return m.list[c.first : c.first+c.n]
}

func (m *codeMap) decode(number int) {
	c, end := &m.chunks[number], uint32(len(m.code))
	if number+1 < len(m.chunks) {
		end = m.chunks[number+1].begin
	}
	c.first = int32(len(m.list))
	var in arch.Inst
	for at := c.begin; at < end && len(m.list) < maxListed; at += in.Len {
		if !m.cpu.Read(m.code, at, &in) {
			in = arch.Inst{Len: m.cpu.MinInst, Flow: flowUnknown}
		}
		i := instruction{at: at, len: uint8(in.Len), disp: in.Disp, arg: in.Arg, flow: in.Flow,
			swaps: in.Swaps, stores: in.Stores, kindOf: in.Kind, base: in.Base, shift: in.Shift, widens: in.Widens,
			byte: in.Byte, loads: in.Loads, indexed: in.Indexed, narrow: in.Narrow, begins: at == c.begin}
		if in.HasTarget && in.Flow != arch.FlowCall {
			i.to, i.jumps = in.Target, true
			m.jumps.note(m, at, in.Target)
		}
		if len(m.list) == cap(m.list) { // append alone would copy the list more often
			m.list = slices.Grow(m.list, max(len(m.list), min(len(m.code)/roomFor, mostRoom), leastListed))
		}
		m.list = append(m.list, i)
	}
	if c.n = int32(len(m.list)) - c.first; c.n > 0 {
		m.list[len(m.list)-1].ends = true
	}
}

// place returns the place of the instruction that begins at an offset, notInCode if none does.
func (m *codeMap) place(at uint32) int32 {
	if uint64(at) >= uint64(len(m.code)) || len(m.chunks) == 0 {
		return notInCode
	}
	c := m.chunkAt(at)
	list := m.decoded(c)
	low, high := 0, len(list)
	for low < high {
		if mid := int(uint(low+high) / 2); list[mid].at < at {
			low = mid + 1
		} else {
			high = mid
		}
	}
	if low == len(list) || list[low].at != at {
		return notInCode
	}
	return m.chunks[c].first + int32(low)
}

// target returns the place to which an instruction jumps, notInCode if it does not jump or the target is not known.
func (m *codeMap) target(n int32) int32 {
	if i := &m.list[n]; i.jumps {
		return m.place(i.to)
	}
	return notInCode
}

// end returns the offset behind an instruction.
func (m *codeMap) end(n int32) uint32 { return m.list[n].at + uint32(m.list[n].len) }

// next returns the place of the instruction behind another, notInCode behind the last one.
func (m *codeMap) next(n int32) int32 {
	if !m.list[n].ends {
		return n + 1
	}
	c := m.chunkAt(m.list[n].at) + 1
	if c >= len(m.chunks) || len(m.decoded(c)) == 0 {
		return notInCode
	}
	return m.chunks[c].first
}

// before returns the place of the instruction before another, notInCode before the first one.
func (m *codeMap) before(n int32) int32 {
	if !m.list[n].begins {
		return n - 1
	}
	c := m.chunkAt(m.list[n].at) - 1
	if c < 0 || len(m.decoded(c)) == 0 {
		return notInCode
	}
	return m.chunks[c].first + m.chunks[c].n - 1
}

// spentAt returns the instruction in which a thread has spent its time before it was stopped at instruction n. An
// interrupt waits until an atomic instruction has retired (Intel SDM volume 3, 8.1). Then the pc is at the next
// instruction, which may belong to another method.
func (m *codeMap) spentAt(n int32, level uint8) int32 {
	if n < 0 || int(n) >= len(m.list) {
		return n
	}
	before := m.before(n)
	if before != notInCode && m.list[before].kindOf == arch.KindAtomic && len(m.jumpsTo(n)) == 0 {
		return before
	}
	return m.pastJump(n, level)
}

// pastJump returns the target of a jump of C2's. For any other instruction it returns the instruction. C2 adds jumps
// after it has placed all other code (opto/block.cpp, insert_goto_at). Such a jump belongs to no bytecode, and the
// record behind it belongs to code that is not executed next.
func (m *codeMap) pastJump(n int32, level uint8) int32 {
	for k := 0; level == levelC2 && k < maxLoops && n >= 0 && int(n) < len(m.list); k++ {
		to := m.target(n)
		if m.list[n].flow != arch.FlowJump || to == notInCode {
			break
		}
		n = to
	}
	return n
}
