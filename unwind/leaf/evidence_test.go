package leaf

import (
	"testing"

	"goprof/arch/amd64"
	"goprof/arch/arm64"
	"goprof/vmstructs"
)

// TestOfField: if the access of a field has the record of an invoke, the field belongs to the method that the invoke
// calls, or to the method that this one calls at once with the same receiver.
func TestOfField(t *testing.T) {
	const field, other, this = vmstructs.OpGetfield, vmstructs.OpIadd, vmstructs.OpAload0
	for _, r := range []struct {
		name        string
		inner, leaf []uint8 // the opcodes of the method that is invoked, and of what that one invokes, at 0, 3, 6
		intrinsic   bool
		want        string
		bci         int32
	}{
		{"its first field", []uint8{other, field, field}, nil, false, "inner", 3},
		{"no field", []uint8{other, other}, nil, false, "outer", 6},
		{"an intrinsic method", []uint8{this, field}, nil, true, "inner", 3},
		{"it calls another one", []uint8{this, vmstructs.OpInvoke, field}, []uint8{other, field}, false, "leaf", 3},
		{"which has no field", []uint8{this, vmstructs.OpInvoke, field}, []uint8{other}, false, "inner", 6},
		{"on another object", []uint8{other, vmstructs.OpInvoke, field}, []uint8{other, field}, false, "inner", 6},
	} {
		u := newMadeUp(t)
		u.assemble(t, "c3", vmCall)
		u.f.codeMaps = map[*vmstructs.Blob]*codeMap{u.b: u.m}
		outer := &vmstructs.Method{Name: "outer", CodeSize: 9}
		inner := &vmstructs.Method{Name: "inner", CodeSize: 9, Intrinsic: r.intrinsic}
		leaf := &vmstructs.Method{Name: "leaf", CodeSize: 9}
		u.f.bytecode[outer] = bytecodesOfOps(other, other, vmstructs.OpInvoke)
		u.f.bytecode[inner], u.f.bytecode[leaf] = bytecodesOfOps(r.inner...), bytecodesOfOps(r.leaf...)
		u.f.callees = map[invokeSite]knownInvoke{
			{outer, 6}: {Invocation: vmstructs.Invocation{Method: inner, Intrinsic: r.intrinsic}, whole: true},
			{inner, 3}: {Invocation: vmstructs.Invocation{Method: leaf}, whole: true},
		}
		s := u.question().ofField([]vmstructs.Scope{{Method: outer, BCI: 6}})
		if s[0].Method.Name != r.want || s[0].BCI != r.bci {
			t.Errorf("%s: %s at %d", r.name, s[0].Method.Name, s[0].BCI)
		}
	}
}

func bytecodesOfOps(ops ...uint8) (code []vmstructs.Bytecode) {
	for i, op := range ops {
		code = append(code, bytecode(int32(3*i), op))
	}
	return code
}

// TestBehindBuilding: behind code that builds a frame the method begins, however the thread came there. Back from the
// target of a jump to the next instruction, the path leads to that jump.
func TestBehindBuilding(t *testing.T) {
	u := newMadeUp(t)
	m := &codeMap{cpu: arm64.CPU}
	m.begin(unhex(t, "02000014 01000000 200440f9 200440f9"), 0, func(func(uint64) bool) {}) // b out; udf 1; ldr; ldr
	m.place(0)
	for complete, want := range map[int]evidenceKind{-1: noEvidence, 0: noEvidence, 8: atReturn, 12: atReturn} {
		b := &vmstructs.Blob{End: 16, FrameComplete: complete}
		if e := questionIn(u.f, b, m).behind(3); e.kind != want {
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
