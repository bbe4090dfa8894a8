package leaf

import "slices"

// jumpTable finds the jumps that lead to an offset. For long jumps it searches the bytes of all code without decoding
// the code: bytes that look like a jump count if an instruction begins there. For short jumps it uses decoded code, so
// it first decodes all code that is near enough.
type jumpTable struct {
	read  bool    // the long jumps are found
	first []int32 // for each line of code: 1 + the index in list of the first jump to the line
	list  []jump
	found []int32 // scratch memory of jumpsTo
	// long keeps the results of jumpsTo that took long, by place, because hostile code can cause the same search many
	// times.
	long     map[int32][]int32
	longSize int // bytes
}

type jump struct {
	at, to uint32
	next   int32 // as in first
}

// lineShift: a line of code has 64 bytes.
const lineShift = 6

// maxJumps bounds the jumps of a codeMap: each is an instruction.
const maxJumps = maxListed

// A search takes long if that many jumps lead to the instruction, or to its line.
const longJumps, longLine = 32, 512

func (t *jumpTable) size() int { return 4*cap(t.first) + 12*cap(t.list) + 4*cap(t.found) + t.longSize }

// note adds a short jump.
func (t *jumpTable) note(m *codeMap, at, to uint32) {
	if isNear(m, at, to) {
		t.add(m, at, to)
	}
}

func (t *jumpTable) add(m *codeMap, at, to uint32) {
	if t.first == nil {
		t.first = make([]int32, len(m.code)>>lineShift+1)
	}
	if len(t.list) < maxJumps {
		line := &t.first[to>>lineShift]
		t.list = append(t.list, jump{at, to, *line})
		*line = int32(len(t.list))
	}
}

// isNear reports whether a jump of that length may be a short one.
func isNear(m *codeMap, at, to uint32) bool {
	return max(at, to)-min(at, to) <= m.cpu.ShortJump
}

// jumpsTo returns the places of the jumps that lead to an instruction, in the order of the code. The result is valid
// until the next call.
func (m *codeMap) jumpsTo(n int32) []int32 {
	t, to := &m.jumps, m.list[n].at
	if found, ok := t.long[n]; ok {
		return found
	}
	if !t.read {
		t.read = true
		m.cpu.LongJumps(m.code, func(at, to uint32) {
			if !isNear(m, at, to) {
				t.add(m, at, to)
			}
		})
	}
	m.decodeAround(to)
	t.found = t.found[:0]
	if t.first == nil {
		return nil
	}
	inLine, here := 0, 0
	for k := t.first[to>>lineShift]; k != 0; k = t.list[k-1].next {
		inLine++
		if j := t.list[k-1]; j.to == to {
			here++
			if n := m.place(j.at); n != notInCode && m.list[n].jumps && m.list[n].to == to {
				t.found = append(t.found, n)
			}
		}
	}
	slices.SortFunc(t.found, func(a, b int32) int { return int(m.list[a].at) - int(m.list[b].at) })
	if here > longJumps || inLine > longLine {
		t.keep(n)
	}
	return t.found
}

// keep keeps the result for a place. The result stays right, because all near code is decoded and all long jumps are
// found.
func (t *jumpTable) keep(n int32) {
	if t.long == nil {
		t.long = map[int32][]int32{}
	}
	t.long[n] = slices.Clone(t.found)
	t.longSize += 64 + 4*cap(t.long[n])
}

// decodeAround decodes all code from which a short jump may lead to an offset.
func (m *codeMap) decodeAround(to uint32) {
	begin, end := to-min(to, m.cpu.ShortJump), to+m.cpu.ShortJump
	for c := m.chunkAt(begin); c < len(m.chunks) && m.chunks[c].begin <= end; c++ {
		m.decoded(c)
	}
}
