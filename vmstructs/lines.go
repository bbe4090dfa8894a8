package vmstructs

import (
	"encoding/binary"
	"slices"
)

// lineEntry: the bytecodes from bci on come from that line of the source file.
type lineEntry struct{ bci, line uint16 }

const (
	// maxLineBytes bounds a compressed table. javac writes an entry for each statement.
	maxLineBytes   = 256 << 10
	maxLineEntries = 1 << 16
	// provenLines is the number of bytes of a table that identify its method: enough for about 20 statements.
	provenLines = 32
)

// readLines reads the compressed line number table that follows a method's bytecodes, if the method's flags show that
// there is one (oops/constMethod.hpp). made is a fact with the beginning of the table.
func (vm *VM) readLines(constMethod uint64, codeSize int, head []byte) (lines []lineEntry, made fact) {
	l := &vm.l.method
	if !l.constFlags.ok() || !l.wordSize.ok() || head[l.constFlags]&l.hasLines == 0 {
		return nil, fact{}
	}
	size := 8 * uint64(l.wordSize.u32(head))
	begin := l.constSize + uint64(codeSize)
	if size <= begin || size-begin > maxLineBytes {
		return nil, fact{}
	}
	// The data after the table (checked exceptions, annotations) is read together with it.
	b := make([]byte, size-begin)
	if vm.near.Bytes(constMethod+begin, b) != nil {
		return nil, fact{}
	}
	made = fact{addr: constMethod + begin, want: slices.Clone(b[:min(len(b), provenLines)])}
	lines, _ = decodeLines(b, l.unsigned5X)
	return lines, made
}

// decodeLines decodes a table (oops/method.hpp, CompressedLineNumberReadStream). Each byte has a step of the bci in its
// five upper bits, and a step of the line in its three lower bits. 0xff is followed by two signed numbers, which are
// the steps. 0 ends the table.
func decodeLines(b []byte, x uint8) ([]lineEntry, bool) {
	n := 0
	s := stream{b: b, x: x}
	for ; s.u8() != 0 && n < maxLineEntries; n++ {
		if b[s.pos-1] == 0xff {
			s.s5()
			s.s5()
		}
	}
	if s.bad {
		return nil, false
	}
	lines := make([]lineEntry, 0, n)
	s = stream{b: b, x: x}
	var bci, line int32
	for range n {
		if v := s.u8(); v == 0xff {
			bci += s.s5()
			line += s.s5()
		} else {
			bci += int32(v >> 3)
			line += int32(v & 7)
		}
		if bci < 0 || bci > 0xffff || line < 0 || line > 0xffff {
			return nil, false
		}
		lines = append(lines, lineEntry{uint16(bci), uint16(line)})
	}
	return lines, true
}

// Line returns the source line of a bytecode index, 0 if not known. The bci -1 of a method's entry has the line of the
// first bytecode.
func (m *Method) Line(bci int32) int32 {
	bci = max(bci, 0)
	// Entries may be unsorted. The first entry for exactly this bci is used, otherwise the last one of those with the
	// greatest bci below (oops/method.cpp, line_number_from_bci).
	best, line := int32(-1), int32(0)
	for _, e := range m.lines {
		b := int32(e.bci)
		if b == bci {
			return int32(e.line)
		}
		if b < bci && b >= best {
			best, line = b, int32(e.line)
		}
	}
	return line
}

func word(b []byte) uint64 { return binary.LittleEndian.Uint64(b) }
