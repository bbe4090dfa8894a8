package leaf

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"goprof/arch"
	"goprof/arch/amd64"
	"goprof/arch/arm64"
	"goprof/vmstructs"
)

// TestCodeMap: where instructions begin, and which jumps lead where. A way through the code ends at an unknown
// instruction.
func TestCodeMap(t *testing.T) {
	code := []byte{
		0x90,       // 0: nop
		0x74, 0x03, // 1: je 6
		0xeb, 0xfb, // 3: jmp 0
		0xc3,       // 5: ret
		0x75, 0xf8, // 6: jne 0
		0x74, 0x70, // 8: je out of the code
		0xc3, // 10: ret
		0x0f, // 11: the first half of an instruction
	}
	m := codeMap{cpu: amd64.CPU}
	m.begin(code, 0, slices.Values([]uint64{}))
	for n, want := range []struct {
		at     uint32
		target int32
		flow   arch.Flow
	}{
		{0, notInCode, arch.FlowNext}, {1, 4, arch.FlowBranch}, {3, 0, arch.FlowJump}, {5, notInCode, arch.FlowReturn},
		{6, 0, arch.FlowBranch}, {8, notInCode, arch.FlowBranch}, {10, notInCode, arch.FlowReturn},
		{11, notInCode, flowUnknown},
	} {
		m.place(want.at)
		to := m.target(int32(n))
		if i := &m.list[n]; i.at != want.at || to != want.target || i.flow != want.flow {
			t.Errorf("instruction %d: at %d, to %d, flow %d, not %v", n, i.at, to, i.flow, want)
		}
		if got := m.place(want.at); got != int32(n) {
			t.Errorf("the instruction at %d is number %d, not %d", want.at, got, n)
		}
	}
	if m.place(2) != notInCode || m.place(99) != notInCode || m.end(1) != 3 || m.end(7) != 12 {
		t.Errorf("places %d, %d; ends %d, %d", m.place(2), m.place(99), m.end(1), m.end(7))
	}
	if j := m.jumpsTo(0); len(j) != 2 || j[0] != 2 || j[1] != 4 || len(m.jumpsTo(1)) != 0 {
		t.Errorf("jumps to the begin: %v, to the next: %v", j, m.jumpsTo(1))
	}
	var s ways
	for range 2 { // the second search finds nothing new
		s.begin()
		s.add(4, 0)
		s.goOn(&m, 4, 1)
		s.goOn(&m, 4, 1)
		if len(s.queue) != 3 || s.queue[1] != (reached{5, 1}) || s.queue[2] != (reached{0, 1}) {
			t.Errorf("behind a branch back: %v", s.queue)
		}
	}
	s.begin()
	s.add(4, 0)
	s.comeFrom(&m, 4, 1)
	if len(s.queue) != 2 || s.queue[1].n != 1 {
		t.Errorf("before an instruction behind a return: %v", s.queue)
	}
}

// TestJumpsTo: the jumps to each instruction of made-up code are those that were put there, short and long ones,
// whatever was decoded before.
func TestJumpsTo(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 1))
		cpu := []*arch.CPU{amd64.CPU, arm64.CPU}[seed%2]
		code, begins, jumps := codeWithJumps(r, cpu == amd64.CPU)
		var records []uint64
		for _, at := range begins {
			if r.IntN(9) == 0 {
				records = append(records, 4096+uint64(at))
			}
		}
		m := codeMap{cpu: cpu}
		m.begin(code, 4096, slices.Values(records))
		for _, k := range r.Perm(len(begins)) {
			var got, want []uint32
			for _, n := range m.jumpsTo(m.place(begins[k])) {
				got = append(got, m.list[n].at)
			}
			for from, to := range jumps {
				if to == begins[k] {
					want = append(want, from)
				}
			}
			if slices.Sort(want); !slices.Equal(got, want) {
				t.Fatalf("seed %d: from %v to %d, not from %v", seed, got, begins[k], want)
			}
		}
		for k, at := range begins[1:] {
			if n := m.place(at); m.before(n) != m.place(begins[k]) || m.next(m.place(begins[k])) != n {
				t.Fatalf("seed %d: %d is not before %d", seed, begins[k], at)
			}
		}
	}
}

// codeWithJumps makes code in which every fourth instruction jumps. It returns the code, where instructions begin, and
// which of them jump where.
func codeWithJumps(r *rand.Rand, x86 bool) (code []byte, begins []uint32, jumps map[uint32]uint32) {
	kinds := [][]byte{{0x48, 0x8b, 0x40, 0x10}, {0x90}, {0x74, 0}, {0x0f, 0x84, 0, 0, 0, 0}, {0xe9, 0, 0, 0, 0},
		{0xb8, 0x0f, 0x84, 0, 0}} // the last looks like a jump in its middle
	if !x86 {
		kinds = [][]byte{{0x1f, 0x20, 0x03, 0xd5}, {0, 0, 0, 0x54}, {0, 0, 0, 0x14}, {0, 0, 0, 0x34}}
	}
	for range 400 {
		begins = append(begins, uint32(len(code)))
		kind := kinds[0]
		if r.IntN(2) == 0 {
			kind = kinds[r.IntN(len(kinds))]
		}
		code = append(code, kind...)
	}
	jumps = map[uint32]uint32{}
	for k, at := range begins {
		in := code[at:]
		to := begins[r.IntN(len(begins))]
		switch {
		case !x86 && in[3] == 0x14:
			binary.LittleEndian.PutUint32(in, 0x14<<24|(to-at)>>2&0x3ffffff)
		case !x86 && in[3] != 0xd5:
			binary.LittleEndian.PutUint32(in, uint32(in[3])<<24|(to-at)>>2&0x7ffff<<5)
		case !x86 || in[0] == 0x48 || in[0] == 0x90 || in[0] == 0xb8:
			continue
		case in[0] == 0x74:
			to = begins[max(k-r.IntN(20), 0)]
			in[1] = byte(to - at - 2)
		case in[0] == 0x0f:
			binary.LittleEndian.PutUint32(in[2:], to-at-6)
		default:
			binary.LittleEndian.PutUint32(in[1:], to-at-5)
		}
		jumps[at] = to
	}
	return code, begins, jumps
}

// TestManyJumps: the search backward ends in a circle, and the targets of many jumps are found only once.
func TestManyJumps(t *testing.T) {
	code := []byte{0xc3, 0x90} // ret, and the nop to which all jump
	for range 4000 {
		code = append(code, 0xe9, 0, 0, 0, 0)
		binary.LittleEndian.PutUint32(code[len(code)-4:], uint32(1-len(code)))
	}
	m := codeMap{cpu: amd64.CPU}
	m.begin(code, 0, slices.Values([]uint64{}))
	n, size := m.place(1), m.size()
	if got := len(m.jumpsTo(n)); got != 4000 || m.size() < size+4*4000 {
		t.Errorf("%d jumps, %d bytes and then %d", got, size, m.size())
	}
	m.jumps.first = make([]int32, len(m.jumps.first)) // no jump can be found from here on
	if got := len(m.jumpsTo(n)); got != 4000 {
		t.Errorf("%d jumps when asked again", got)
	}
	var way leftBehind
	steps, ok := 0, true
	for at := n; ok && steps < maxWay; steps++ {
		at, ok = way.step(&m, at)
	}
	if steps != 3 {
		t.Errorf("%d steps in a circle of two instructions", steps)
	}
}

// TestInstructionSize: instructionSize is what an instruction takes in memory.
func TestInstructionSize(t *testing.T) {
	if n := unsafe.Sizeof(instruction{}); n != instructionSize {
		t.Errorf("an instruction takes %d bytes", n)
	}
}

// TestSettle: the growth of a map counts at once, and maps that are too large are given up.
func TestSettle(t *testing.T) {
	f := &Finder{codeMaps: map[*vmstructs.Blob]*codeMap{}}
	b, given := &vmstructs.Blob{}, &vmstructs.Blob{}
	m := &codeMap{list: make([]instruction, 8000)}
	f.codeMaps[b] = m
	f.settle(given, m)
	if f.mapped != 0 {
		t.Errorf("a map that was given up counts %d", f.mapped)
	}
	for range 2 { // the map counts once
		if f.settle(b, m); f.mapped != instructionSize*8000/perByte || f.codeMaps[b] != m {
			t.Errorf("a map of %d bytes counts %d", m.size(), f.mapped)
		}
	}
	m.list = make([]instruction, maxMapped)
	if f.settle(b, m); f.mapped != 0 || len(f.codeMaps) != 0 {
		t.Errorf("%d maps that count %d", len(f.codeMaps), f.mapped)
	}
}

// TestQuestionsSettle: after each question, all memory that the question took for a map counts.
func TestQuestionsSettle(t *testing.T) {
	asked := 0
	rec, f := recorded(t, recordings(t, "walks")[0])
	for i, snap := range rec.Snapshots {
		rec.Step(i)
		b, err := f.vm.Blob(snap.Regs[f.cpu.PC])
		if err != nil || !b.Kind.IsNmethod() || !b.TellsScopes() {
			continue
		}
		for pc := b.Begin; pc < b.End; pc += 64 {
			for i, ask := range []func(){
				func() { f.At(b, pc) },
				func() { f.Judge(b, pc, vmstructs.Scope{Method: b.Method}) },
				func() { f.Called(b, pc, "") },
				func() { f.Counted(b, pc, b.OwnScope()) },
				func() { f.Computes(b, pc) },
				func() { f.HandsClassTo(b, pc) },
			} {
				f.codeMaps, f.mapped = map[*vmstructs.Blob]*codeMap{}, 0
				ask()
				for _, m := range f.codeMaps {
					if asked++; m.charged != max(m.size()/perByte-len(m.code), 0) {
						t.Fatalf("question %d: %d bytes, %d charged", i, m.size(), m.charged)
					}
				}
			}
		}
	}
	if asked == 0 {
		t.Error("nothing was asked")
	}
}

// TestDecodesLittle: of 64 KB of code, only what is near is decoded.
func TestDecodesLittle(t *testing.T) {
	code := make([]byte, 64<<10)
	for i := range code {
		code[i] = 0x90
	}
	var records []uint64
	for at := uint64(50); at < uint64(len(code)); at += 50 {
		records = append(records, at)
	}
	m := codeMap{cpu: amd64.CPU}
	m.begin(code, 0, slices.Values(records))
	f := &Finder{}
	n := m.place(40_020)
	f.ways[0].begin()
	f.ways[0].add(n, 0)
	for k := 0; k < 100; k++ {
		f.ways[0].comeFrom(&m, f.ways[0].queue[k].n, int32(k))
	}
	if n == notInCode || len(f.ways[0].queue) != 101 || len(m.list) > 600 {
		t.Errorf("at place %d, %d instructions back, %d decoded", n, len(f.ways[0].queue), len(m.list))
	}
}
