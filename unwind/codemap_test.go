package unwind

import (
	"testing"

	"goprof/arch"
	"goprof/arch/amd64"
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
	var m codeMap
	m.decode(amd64.CPU, code)
	for n, want := range []struct {
		at     uint32
		target int32
		flow   arch.Flow
	}{
		{0, notInCode, arch.FlowNext}, {1, 4, arch.FlowBranch}, {3, 0, arch.FlowJump}, {5, notInCode, arch.FlowReturn},
		{6, 0, arch.FlowBranch}, {8, notInCode, arch.FlowBranch}, {10, notInCode, arch.FlowReturn},
		{11, notInCode, flowUnknown},
	} {
		if i := &m.list[n]; i.at != want.at || i.target != want.target || i.flow != want.flow {
			t.Errorf("instruction %d: at %d, to %d, flow %d, not %v", n, i.at, i.target, i.flow, want)
		}
		if got := m.place(want.at); got != int32(n) {
			t.Errorf("the instruction at %d is number %d, not %d", want.at, got, n)
		}
	}
	if m.place(2) != notInCode || m.place(99) != notInCode || m.end(1) != 3 || m.end(7) != 12 {
		t.Errorf("places %d, %d; ends %d, %d", m.place(2), m.place(99), m.end(1), m.end(7))
	}
	if j := m.jumpsTo(0); len(j) != 2 || uint32(j[0]) != 2 || uint32(j[1]) != 4 || len(m.jumpsTo(1)) != 0 {
		t.Errorf("jumps to the begin: %v, to the next: %v", j, m.jumpsTo(1))
	}
	var s ways
	for range 2 { // the second search finds nothing that the first one left
		s.begin(len(m.list))
		s.add(4, 0)
		s.goOn(&m, 4, 1)
		s.goOn(&m, 4, 1)
		if len(s.queue) != 3 || s.queue[1] != (reached{5, 1}) || s.queue[2] != (reached{0, 1}) {
			t.Errorf("behind a branch back: %v", s.queue)
		}
	}
	s.begin(len(m.list))
	s.add(4, 0)
	s.comeFrom(&m, 4, 1)
	if len(s.queue) != 2 || s.queue[1].n != 1 {
		t.Errorf("before an instruction behind a return: %v", s.queue)
	}
}
