package unwind

import (
	"slices"

	"goprof/arch"
	"goprof/vmstructs"
)

// The likeliest way from a pc, or to it, may have no evidence. Then the nearest evidence on any way counts. An example
// is a loop that is left by one of its branches in the middle.

// maxSearch bounds the instructions of all ways together.
const maxSearch = 600

// reached is an instruction to which a search has come: its place among codeMap.starts.
type reached struct {
	i, far int32
}

// search goes all ways from an offset, ahead or back, and returns the nearest evidence.
func (w *Walker) search(b *vmstructs.Blob, m *codeMap, at uint32, back bool) (e evidence) {
	i, ok := slices.BinarySearch(m.starts, at)
	if !ok {
		return e
	}
	seen := make(map[int32]bool, maxSearch)
	queue := make([]reached, 1, maxSearch)
	queue[0], seen[int32(i)] = reached{int32(i), 0}, true
	add := func(i int, far int32) {
		if i >= 0 && i < len(m.starts) && !seen[int32(i)] && len(queue) < maxSearch {
			seen[int32(i)] = true
			queue = append(queue, reached{int32(i), far})
		}
	}
	var in arch.Inst
	for n := 0; n < len(queue); n++ {
		r := queue[n]
		at := m.starts[r.i]
		if !w.cpu.Read(m.code, at, &in) {
			continue
		}
		if r.far > 0 || !back {
			if e = w.evidenceAt(b, m, at, &in); e.kind != noEvidence && !(back && e.kind == atReturn) {
				e.far = int(r.far)
				return e
			}
		}
		if back {
			w.comeFrom(m, int(r.i), r.far+1, add)
		} else {
			w.goOn(m, int(r.i), &in, r.far+1, add)
		}
	}
	return evidence{}
}

// goOn tells where code goes on behind an instruction.
func (w *Walker) goOn(m *codeMap, i int, in *arch.Inst, far int32, add func(i int, far int32)) {
	if in.Flow == arch.FlowNext || in.Flow == arch.FlowBranch || in.Flow == arch.FlowCall {
		add(i+1, far)
	}
	if in.HasTarget && in.Flow != arch.FlowCall {
		if t, ok := slices.BinarySearch(m.starts, in.Target); ok {
			add(t, far)
		}
	}
}

// comeFrom tells from where code comes to an instruction.
func (w *Walker) comeFrom(m *codeMap, i int, far int32, add func(i int, far int32)) {
	at := m.starts[i]
	var in arch.Inst
	if i > 0 && w.cpu.Read(m.code, m.starts[i-1], &in) &&
		(in.Flow == arch.FlowNext || in.Flow == arch.FlowBranch || in.Flow == arch.FlowCall) {
		add(i-1, far)
	}
	j, _ := slices.BinarySearchFunc(m.jumps, at, func(j jump, to uint32) int { return int(j.to) - int(to) })
	for ; j < len(m.jumps) && m.jumps[j].to == at; j++ {
		if from, ok := slices.BinarySearch(m.starts, m.jumps[j].from); ok {
			add(from, far)
		}
	}
}
