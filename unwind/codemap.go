package unwind

import (
	"slices"

	"goprof/arch"
	"goprof/vmstructs"
)

// codeMap is what is known of an nmethod's code: its instructions, and which of them jump where. The nmethod's code is
// decoded once, and what an instruction tells is found out once: the ways from several pcs have much in common.
type codeMap struct {
	code []byte
	list []instruction
	// jumps are pairs of places in list, in order: where a jump leads, and in the lower half where it stands.
	jumps []uint64
	// pieces are what C2 made in one piece for intrinsic methods, in order.
	pieces []piece
	tree   inlining
	calls  []recordedCall // by site
	// looked is how many calls' targets were looked at: see isJavaCall.
	looked int
	// methods are those of the tree that a route has asked for.
	methods map[uint64]*vmstructs.Method
	// alone: nothing is inlined into the code, if aloneKnown
	alone, aloneKnown bool
}

// instruction is one instruction of a codeMap.
type instruction struct {
	at     uint32
	target int32 // the place in codeMap.list where a branch or a jump leads, or notInCode
	disp   int32 // see arch.Inst
	record uint32
	flow   arch.Flow
	// told: the evidence that the instruction is has been found out: kind, record and field (see evidence).
	told, field bool
	swaps       bool // see arch.Inst
	kind        evidenceKind
}

// notInCode is the target of an instruction that jumps nowhere in its code, or nobody knows where.
const notInCode = -1

// flowUnknown is how bytes go on that are data, or an instruction that nobody knows.
const flowUnknown arch.Flow = 0xff

// maxMapped bounds the code that all codeMaps are of, and so that of a single one. A codeMap has some 6 bytes for each
// byte of code (perByte), and more where no compiler made the code. Only the first sight of a pc asks for one, so few
// need to be kept.
const maxMapped, perByte = 2 << 20, 6

// maxListed bounds the instructions of a codeMap: compilers make fewer of as much code.
const maxListed = maxMapped / 2

// mapCode reads an nmethod's code once.
func (w *Walker) mapCode(b *vmstructs.Blob) *codeMap {
	if m, ok := w.codeMaps[b]; ok {
		return m
	}
	n := int(min(b.End-b.Begin, maxMapped+1))
	if w.mapped += n + 64; w.mapped > maxMapped {
		w.codeMaps, w.mapped = make(map[*vmstructs.Blob]*codeMap), n
	}
	m := &codeMap{}
	w.codeMaps[b] = m
	if n > maxMapped {
		return m
	}
	if code, err := w.vm.Code(b, nil); err == nil {
		m.decode(w.cpu, code)
		w.mapped += m.size() / perByte
	}
	return m
}

// size is how much memory the lists take, beyond what the code's own size accounts for.
func (m *codeMap) size() int {
	return max(20*cap(m.list)+8*cap(m.jumps)-perByte*len(m.code), 0) + pieceSize*cap(m.pieces)
}

// decode lists the instructions and the jumps of code.
func (m *codeMap) decode(cpu *arch.CPU, code []byte) {
	m.code, m.list = code, make([]instruction, 0, len(code)/4)
	jumps := 0
	var in arch.Inst
	for at := uint32(0); int(at) < len(code); at += in.Len {
		known := cpu.Read(code, at, &in)
		if !known {
			in = arch.Inst{Len: cpu.MinInst, Flow: flowUnknown}
		}
		i := instruction{at: at, target: notInCode, disp: in.Disp, flow: in.Flow, swaps: in.Swaps}
		if in.HasTarget && in.Flow != arch.FlowCall {
			i.target = int32(in.Target)
			jumps++
		}
		m.notePiece(cpu, at)
		if m.list = append(m.list, i); len(m.list) > maxListed {
			m.list = nil // nothing is known of such code
			return
		}
	}
	m.endPieces()
	m.jumps = make([]uint64, 0, jumps)
	for n := range m.list {
		if i := &m.list[n]; i.target != notInCode {
			if i.target = m.place(uint32(i.target)); i.target != notInCode {
				m.jumps = append(m.jumps, uint64(i.target)<<32|uint64(n))
			}
		}
	}
	slices.Sort(m.jumps)
}

// place finds the instruction that begins at an offset, notInCode if none does.
func (m *codeMap) place(at uint32) int32 {
	n, ok := slices.BinarySearchFunc(m.list, at, func(i instruction, at uint32) int { return int(i.at) - int(at) })
	if !ok {
		return notInCode
	}
	return int32(n)
}

// end is the offset behind an instruction.
func (m *codeMap) end(n int32) uint32 {
	if int(n)+1 < len(m.list) {
		return m.list[n+1].at
	}
	return uint32(len(m.code))
}

// jumpsTo returns the jumps that lead to an instruction, as codeMap.jumps has them.
func (m *codeMap) jumpsTo(n int32) []uint64 {
	begin, _ := slices.BinarySearch(m.jumps, uint64(n)<<32)
	end := begin
	for end < len(m.jumps) && m.jumps[end]>>32 == uint64(n) {
		end++
	}
	return m.jumps[begin:end]
}
