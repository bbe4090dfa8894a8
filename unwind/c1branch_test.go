package unwind

import (
	"testing"

	"goprof/arch/amd64"
	"goprof/arch/arm64"
	"goprof/vmstructs"
)

// TestBehindBranch: a branch to what an inlined method does first is that of its caller.
func TestBehindBranch(t *testing.T) {
	outer, middle := &vmstructs.Method{Name: "outer"}, &vmstructs.Method{Name: "middle"}
	inner := &vmstructs.Method{Name: "inner"}
	w := &Walker{bytecode: map[*vmstructs.Method][]vmstructs.Bytecode{
		outer:  {branch(0, vmstructs.OpIfeq, 9), bytecode(3, vmstructs.OpInvoke)},
		middle: {bytecode(0, vmstructs.OpInvoke), branch(3, vmstructs.OpIfeq, 9)},
		inner: {bytecode(0, vmstructs.OpNew), branch(3, vmstructs.OpIfeq, 6), bytecode(6, vmstructs.OpNew),
			branch(9, vmstructs.OpIfeq, 6)},
	}}
	at := func(m *vmstructs.Method, bci int32) vmstructs.Scope { return vmstructs.Scope{Method: m, BCI: bci} }
	for _, r := range []struct {
		name   string
		scopes []vmstructs.Scope
		want   uint8
	}{
		{"a branch before", []vmstructs.Scope{at(inner, 6), at(outer, 3)}, 0},
		{"none before", []vmstructs.Scope{at(inner, 0), at(outer, 3)}, 1},
		{"in two methods", []vmstructs.Scope{at(inner, 0), at(middle, 0), at(outer, 3)}, 2},
		{"nowhere", []vmstructs.Scope{at(inner, 0), at(middle, 0)}, 1},
	} {
		if outer := w.behindBranch(r.scopes); outer != r.want {
			t.Errorf("%s: %d, not %d", r.name, outer, r.want)
		}
	}
}

// TestBehindBuilding: behind code that builds a frame stands the method's begin, though nobody knows how the code came
// there; and what jumps to the next instruction goes on there.
func TestBehindBuilding(t *testing.T) {
	u := newMadeUp(t)
	m := &codeMap{cpu: arm64.CPU}
	m.begin(unhex(t, "02000014 01000000 200440f9 200440f9"), 0, func(func(uint64) bool) {}) // b out; udf 1; ldr; ldr
	m.place(0)
	for complete, want := range map[int]evidenceKind{-1: noEvidence, 0: noEvidence, 8: atReturn, 12: atReturn} {
		b := &vmstructs.Blob{End: 16, FrameComplete: complete}
		if e := u.w.behind(b, m, 3); e.kind != want {
			t.Errorf("the frame is whole at %d: %+v", complete, e)
		}
	}
	m = &codeMap{cpu: amd64.CPU}
	m.begin(unhex(t, "4889d8 eb00 4889c1"), 0, func(func(uint64) bool) {})
	m.place(0)
	var way leftBehind
	if before, ok := way.step(m, 2); !ok || before != 1 {
		t.Errorf("before what a jump leads to stands %d, %v", before, ok)
	}
}

// TestNotedOnArm: an address in three instructions is noted with the call behind it, and what makes an address of a
// class with the load before it.
func TestNotedOnArm(t *testing.T) {
	u := newMadeUp(t)
	m := &codeMap{cpu: arm64.CPU}
	// mov x0, x1; mov x2, address: three instructions; bl; ldr w3, [x2, 8]; movk x3, 32, lsl 32; ldr w4, [x2, 12];
	// lsl x4, x4, 3
	m.begin(unhex(t, "e00301aa 02cf8ad2 8246a2f2 02e0eff2 00000094 430840b9 0304c0f2 440c40b9 84f07dd3"), 0,
		func(func(uint64) bool) {})
	m.place(0)
	for n, want := range []int32{4, 4, 4, 4, 4, 5, 5, 7, 7} {
		if at := u.w.notedWith(m, int32(n)); at != want {
			t.Errorf("instruction %d is noted with %d, not %d", n, at, want)
		}
	}
}
