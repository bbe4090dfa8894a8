package unwind

import (
	"testing"

	"goprof/vmstructs"
)

// TestOfField: an access of a field that has the record of an invoke is of the method that the invoke calls, or of the
// one that this calls at once with the same receiver.
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
		u.w.codeMaps = map[*vmstructs.Blob]*codeMap{u.b: u.m}
		outer := &vmstructs.Method{Name: "outer", CodeSize: 9}
		inner := &vmstructs.Method{Name: "inner", CodeSize: 9, Intrinsic: r.intrinsic}
		leaf := &vmstructs.Method{Name: "leaf", CodeSize: 9}
		u.w.bytecode[outer] = bytecodesOfOps(other, other, vmstructs.OpInvoke)
		u.w.bytecode[inner], u.w.bytecode[leaf] = bytecodesOfOps(r.inner...), bytecodesOfOps(r.leaf...)
		u.w.callees = map[invokeSite]knownInvoke{
			{outer, 6}: {Invocation: vmstructs.Invocation{Method: inner, Intrinsic: r.intrinsic}, whole: true},
			{inner, 3}: {Invocation: vmstructs.Invocation{Method: leaf}, whole: true},
		}
		s := u.w.ofField(u.b, []vmstructs.Scope{{Method: outer, BCI: 6}})
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
