package leaf

import "goprof/arch"

// The likeliest path from a pc, or to it, may have no evidence, for example in a loop whose exit is a branch in its
// middle. Then the nearest evidence on any path counts.

// maxSearch bounds the instructions of all paths together.
const maxSearch = 600

// reached is an instruction that a search has reached, by its place in codeMap.list.
type reached struct {
	n, far int32
}

// nearest returns the nearest evidence ahead or behind: on the likeliest path, otherwise on any path. It keeps results,
// because several rules need the same evidence.
func (q *question) nearest(n int32, back bool) (e evidence) {
	for i := range q.nears {
		if k := &q.nears[i]; k.n == n && k.back == back {
			return k.evidence
		}
	}
	switch {
	case n == notInCode:
		return evidence{}
	case back:
		e = q.behind(n)
	default:
		e = q.ahead(n)
	}
	if e.kind == noEvidence {
		e = q.search(n, back)
	}
	if len(q.nears) < maxNears {
		q.nears = append(q.nears, foundNear{n, back, e})
	}
	return e
}

// foundNear is a kept result of nearest with its arguments.
type foundNear struct {
	n    int32
	back bool
	evidence
}

// maxNears bounds the results of nearest that are kept until the next question.
const maxNears = 16

// search follows all paths from an instruction, ahead or back, and returns the nearest evidence.
func (q *question) search(n int32, back bool) evidence {
	m := q.code
	if n < 0 || int(n) >= len(m.list) {
		return evidence{}
	}
	s := q.beginWays()
	if s == nil {
		return evidence{}
	}
	defer s.end()
	s.add(n, 0)
	for k := 0; k < len(s.queue); k++ {
		r := s.queue[k]
		if m.list[r.n].flow == flowUnknown {
			continue
		}
		if r.far > 0 || !back {
			if e := q.evidenceAt(r.n); e.kind != noEvidence && !(back && e.kind == atReturn) {
				e.far = int(r.far)
				return e
			}
		}
		if back {
			s.comeFrom(m, r.n, r.far+1)
		} else {
			s.goOn(m, r.n, r.far+1)
		}
	}
	return evidence{}
}

type ways struct {
	queue []reached
	seen  []uint64 // bits by place in codeMap.list
	busy  bool     // a search is under way
}

// mostNested bounds the nested searches. A search that reaches an unknown piece needs the piece's methods, and finding
// these may need another search (methodsOfPiece).
const mostNested = 4

// beginWays returns scratch memory for a search, nil if too many searches are under way.
func (f *Finder) beginWays() *ways {
	for i := range f.ways {
		if s := &f.ways[i]; !s.busy {
			s.begin()
			s.busy = true
			return s
		}
	}
	return nil
}

func (s *ways) end() { s.busy = false }

func (s *ways) begin() {
	for _, r := range s.queue { // clears what the last search has reached
		s.seen[r.n/64] = 0
	}
	s.queue = s.queue[:0]
}

func (s *ways) add(n, far int32) {
	if words := int(n/64) + 1; words > len(s.seen) { // the search itself may decode more code
		s.seen = append(s.seen, make([]uint64, words-len(s.seen))...)
	}
	if len(s.queue) < maxSearch && s.seen[n/64]&(1<<(n%64)) == 0 {
		s.seen[n/64] |= 1 << (n % 64)
		s.queue = append(s.queue, reached{n, far})
	}
}

// goOn adds the instructions that may follow an instruction.
func (s *ways) goOn(m *codeMap, n, far int32) {
	if goesOn(m.list[n].flow) {
		if next := m.next(n); next != notInCode {
			s.add(next, far)
		}
	}
	if to := m.target(n); to != notInCode {
		s.add(to, far)
	}
}

// comeFrom adds the instructions that may precede an instruction.
func (s *ways) comeFrom(m *codeMap, n, far int32) {
	if before := m.before(n); before != notInCode && goesOn(m.list[before].flow) {
		s.add(before, far)
	}
	for _, from := range m.jumpsTo(n) {
		s.add(from, far)
	}
}

// goesOn reports whether the next instruction in memory may be the next to be executed.
func goesOn(f arch.Flow) bool {
	return f == arch.FlowNext || f == arch.FlowBranch || f == arch.FlowCall
}
