package unwind

import (
	"slices"

	"goprof/arch"
	"goprof/vmstructs"
)

// evidence is an instruction. In one way or another, the compiler has told the methods at that instruction.
type evidence struct {
	kind  evidenceKind
	far   int    // instructions from where the search began
	scope uint64 // the pc whose record has the methods; 0: the owner's alone
	field bool   // of an atNull: it accesses a field, and not the class
}

type evidenceKind uint8

const (
	noEvidence evidenceKind = iota
	atCall                  // a call that has a record
	atPoll
	atTrap   // a branch to a call that has one, laid out elsewhere: a check that fails, or work that is seldom done
	atNull   // an access that faults on a null reference, and goes on at such a call
	atReturn // of the method that owns the code
)

const (
	// maxWay bounds the instructions that are read ahead or back. maxDetour bounds the instructions between a branch
	// and the call to which the branch leads.
	maxWay    = 300
	maxDetour = 40
	maxLoops  = 8
)

// codeMap is what is known of an nmethod's code: where its instructions begin, and which of them jump where.
type codeMap struct {
	code   []byte
	starts []uint32
	jumps  []jump // by where they lead, and then where they stand
	tree   inlining
	// alone: nothing is inlined into the code, if aloneKnown
	alone, aloneKnown bool
}

type jump struct{ to, from uint32 }

// maxMapped bounds the code that all codeMaps are of, and so that of a single one. A codeMap has some 3 bytes for each
// byte of code. Only the first sight of a pc asks for one, so few need to be kept.
const maxMapped = 3 << 20

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
	code, err := w.vm.Code(b, nil)
	if err != nil {
		return m
	}
	m.code, m.starts = code, make([]uint32, 0, n/4)
	var in arch.Inst
	for at := uint32(0); int(at) < len(code); at += in.Len {
		if !w.cpu.Read(code, at, &in) {
			in = arch.Inst{Len: w.cpu.MinInst} // data, or what nobody knows
		}
		m.starts = append(m.starts, at)
		if in.HasTarget && in.Flow != arch.FlowCall {
			m.jumps = append(m.jumps, jump{in.Target, at})
		}
	}
	slices.SortFunc(m.jumps, func(a, b jump) int {
		if a.to != b.to {
			return int(a.to) - int(b.to)
		}
		return int(a.from) - int(b.from)
	})
	return m
}

// at tells what an instruction itself says.
func (w *Walker) evidenceAt(b *vmstructs.Blob, m *codeMap, at uint32, in *arch.Inst) (e evidence) {
	pc := b.Begin + uint64(at)
	next := pc + uint64(in.Len)
	switch {
	case in.Flow == arch.FlowCall:
		if b.HasPcDesc(next) {
			e = evidence{kind: atCall, scope: next}
		}
		return e
	case w.isPoll(b, pc):
		return evidence{kind: atPoll, scope: pc}
	case in.Flow == arch.FlowReturn:
		return evidence{kind: atReturn}
	case in.Flow == arch.FlowBranch && in.HasTarget:
		if to, ok := w.detour(b, m, in.Target); ok {
			return evidence{kind: atTrap, scope: to}
		}
	}
	if to, ok := w.vm.OnNull(b, at); ok {
		if to, ok := w.detour(b, m, to); ok {
			return evidence{kind: atNull, scope: to, field: in.Disp > maxHeader}
		}
	}
	return e
}

// detour follows code that does one thing alone, and returns the record of the call to which it leads.
func (w *Walker) detour(b *vmstructs.Blob, m *codeMap, at uint32) (uint64, bool) {
	var in arch.Inst
	for range maxDetour {
		if !w.cpu.Read(m.code, at, &in) {
			return 0, false
		}
		next := at + in.Len
		switch in.Flow {
		case arch.FlowCall:
			if pc := b.Begin + uint64(next); b.HasPcDesc(pc) {
				return pc, true
			}
		case arch.FlowJump:
			if !in.HasTarget {
				return 0, false
			}
			next = in.Target
		case arch.FlowBranch, arch.FlowReturn, arch.FlowEnds:
			return 0, false
		}
		at = next
	}
	return 0, false
}

// ahead finds the evidence to which the code at an offset comes next. Compilers put what they expect right behind a
// branch. But a branch back is the end of a loop, and the loop is expected to run again. ahead takes such a branch
// once: if the loop itself tells nothing, the search leaves it for code that does.
func (w *Walker) ahead(b *vmstructs.Blob, m *codeMap, at uint32) (e evidence) {
	var in arch.Inst
	var back [maxLoops]uint32 // the branches back that were taken
	loops := 0
	for far := range maxWay {
		if !w.cpu.Read(m.code, at, &in) {
			return e
		}
		if e = w.evidenceAt(b, m, at, &in); e.kind != noEvidence {
			e.far = far
			return e
		}
		next := at + in.Len
		switch {
		case in.Flow == arch.FlowEnds, in.Flow == arch.FlowJump && !in.HasTarget:
			return e
		case in.Flow == arch.FlowJump:
			next = in.Target
		case in.Flow == arch.FlowBranch && in.HasTarget && in.Target < next:
			if loops < maxLoops && !slices.Contains(back[:loops], at) {
				back[loops] = at
				loops++
				next = in.Target
			}
		}
		at = next
	}
	return e
}

// behind finds the evidence that the code at an offset has left last. Where nothing falls through to an instruction, a
// jump led to it: behind goes on at the first such jump.
func (w *Walker) behind(b *vmstructs.Blob, m *codeMap, at uint32) (e evidence) {
	i, ok := slices.BinarySearch(m.starts, at)
	if !ok {
		return e // no instruction begins there
	}
	var in arch.Inst
	for far := 1; far < maxWay; far++ {
		if i == 0 {
			return evidence{kind: atReturn, far: far}
		}
		next := m.starts[i]
		i--
		if !w.cpu.Read(m.code, m.starts[i], &in) {
			return e
		}
		if in.Flow == arch.FlowJump || in.Flow == arch.FlowReturn || in.Flow == arch.FlowEnds {
			j, _ := slices.BinarySearchFunc(m.jumps, next, func(j jump, to uint32) int { return int(j.to) - int(to) })
			if j == len(m.jumps) || m.jumps[j].to != next {
				return e
			}
			if i, ok = slices.BinarySearch(m.starts, m.jumps[j].from); !ok || !w.cpu.Read(m.code, m.starts[i], &in) {
				return e
			}
		}
		if e = w.evidenceAt(b, m, m.starts[i], &in); e.kind != noEvidence && e.kind != atReturn {
			e.far = far
			return e
		}
		e = evidence{}
	}
	return e
}

// told returns the methods of which an instruction is evidence, nil where there is none or it cannot be read.
func (w *Walker) told(b *vmstructs.Blob, e evidence) []vmstructs.Scope {
	switch {
	case e.kind == noEvidence:
		return nil
	case e.scope == 0:
		return b.OwnScope()
	}
	s, err := w.vm.Scopes(b, e.scope, true)
	if err != nil {
		return nil
	}
	if e.field {
		return w.ofField(b, s)
	}
	return s
}

// maxHeader is where an object's header ends at the latest, but for its class: the first field lies behind.
const maxHeader = 8

// ofField returns the methods at an access of a field that finds a null reference, if the record is that of an invoke.
// The receiver of the invoke is null then, and the method that is inlined there accesses the field.
func (w *Walker) ofField(b *vmstructs.Blob, s []vmstructs.Scope) []vmstructs.Scope {
	code := w.bytecodes(s[0].Method)
	i := vmstructs.BytecodeAt(code, s[0].BCI)
	if i < 0 || !isInvoke(code[i].Op) {
		return s
	}
	r := router{w: w, level: b.Level, blob: b, code: w.mapCode(b)}
	callee := r.callee(s, vmstructs.PlaceOf(s), &code[i])
	if callee == nil {
		return s
	}
	inner := inlinedAt(s, &code[i], callee)
	code = w.bytecodes(callee)
	for i := range code {
		if code[i].Op == vmstructs.OpGetfield || code[i].Op == vmstructs.OpPutfield {
			inner[0].BCI, inner[0].Line = code[i].BCI, callee.Line(code[i].BCI)
			return inner
		}
	}
	return s
}
