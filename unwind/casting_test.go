package unwind

import (
	"testing"

	"goprof/vmstructs"
)

// inC1 is a madeUp as if C1 had made its code.
func inC1(u *madeUp) *vmstructs.Blob {
	b := *u.b
	b.Level = 1
	return &b
}

// TestCastAt: which instructions of C1's code are part of a cast.
func TestCastAt(t *testing.T) {
	// cmp rax, 0; je over the branch; movabs rdi, class; mov ebx, [rax+8]; movabs r10, base; add rbx, r10;
	// cmp rdi, [rbx+0x38]; jne; ret
	const null, class, load = "4883f800 7427 ", "48bf006400e45c7f0000 ", "8b5808 "
	const base, check = "49ba000000e35c7f0000 4c01d3 ", "483b7b38 0f85>0 c3"
	for _, r := range []struct {
		name, code string
		op         uint8
		want       string // for each instruction whether it is the cast's
	}{
		{"a cast", null + class + load + base + check, vmstructs.OpCheckcast, "nnyyyyyyn"},
		{"a question for the class", null + class + load + base + check, vmstructs.OpInstanceof, "nnyyyyyyn"},
		{"of another bytecode", null + class + load + base + check, vmstructs.OpGetfield, "nnnnnnnnn"},
		// mov [rsp+8], rbx
		{"a store in between", class + load + "48895c2408 " + base + check, vmstructs.OpCheckcast, "nnnnnnnn"},
		// mov ebx, [rax+12] in place of the class
		{"no class is loaded", class + "8b580c " + base + check, vmstructs.OpCheckcast, "nnnnnnn"},
		// behind the branch: jmp to the next; mov rdx, rax; mov rcx, rax
		{"its end", class + load + base + "483b7b38 0f85>0 eb00 4889c2 4889c1 c3", vmstructs.OpCheckcast, "yyyyyyyynn"},
		{"a jump elsewhere", class + load + base + "483b7b38 0f85>0 eb03 4889c2 c3", vmstructs.OpCheckcast, "yyyyyynnn"},
		{"a call in between", class + load + "e800000000 " + check, vmstructs.OpCheckcast, "nnnnnn"},
	} {
		u := newMadeUp(t)
		s := u.scopes(0)[0]
		u.w.bytecode[s.Method] = []vmstructs.Bytecode{{BCI: s.BCI, Op: r.op, Target: -1}}
		u.assemble(t, r.code, vmCall, "")
		for n, want := range r.want {
			e := u.w.castAt(inC1(u), u.m, int32(n))
			if got := e.scope == u.b.Begin+uint64(u.records[0]); got != (want == 'y') {
				t.Errorf("%s, instruction %d: %+v", r.name, n, e)
			}
		}
	}
}

// TestDetourPastAllocation: C1 makes an exception where it is thrown. A branch to that leads to the slow path of the
// allocation.
func TestDetourPastAllocation(t *testing.T) {
	u := newMadeUp(t)
	top := disp(u.w.vm.AllocationTop())
	for _, r := range []struct {
		name, stub string
		c1         bool
		want       evidenceKind
	}{
		// mov rax, [r15+top]; lea rdi, [rax+32]; ja to the call
		{"an allocation", "498b87" + top + " 488d7820 0f8700000000", true, atTrap},
		{"in C2's code", "498b87" + top + " 488d7820 0f8700000000", false, noEvidence},
		// mov rax, [rcx+16]; ja
		{"another branch", "488b4110 0f8700000000", true, noEvidence},
		{"two branches", "498b87" + top + " 0f8700000000 0f8700000000", true, noEvidence},
	} {
		u.assemble(t, "4d85d2 0f84>0 c3", vmCall, r.stub) // test r10, r10; je; ret
		b := u.b
		if r.c1 {
			b = inC1(u)
		}
		if e := u.w.evidenceAt(b, u.m, 1); e.kind != r.want {
			t.Errorf("%s: %+v", r.name, e)
		}
	}
}

// TestUsesReceiver: where a method's receiver is accessed first.
func TestUsesReceiver(t *testing.T) {
	const self, other = vmstructs.OpAload0, 0x2b // aload_0, aload_1
	const field, put = vmstructs.OpGetfield, vmstructs.OpPutfield
	const virtual, static = vmstructs.OpInvoke, vmstructs.OpInvokeStatic
	for _, r := range []struct {
		name string
		ops  []uint8
		want int32 // -1: nowhere
	}{
		{"a field", []uint8{self, field}, 1},
		{"a field that is written", []uint8{self, other, put}, 2},
		{"a method of its own", []uint8{self, virtual, field}, 1},
		{"a method of an argument first", []uint8{other, virtual, self, field}, 3},
		{"a static method first", []uint8{static, self, field}, 2},
		{"a static field first", []uint8{vmstructs.OpGetstatic, vmstructs.OpIfeq, self, field}, 3},
		{"nowhere", []uint8{other, vmstructs.OpReturn}, -1},
	} {
		var code []vmstructs.Bytecode
		for i, op := range r.ops {
			code = append(code, bytecode(int32(i), op))
		}
		got := int32(-1)
		if b := usesReceiver(code); b != nil {
			got = b.BCI
		}
		if got != r.want {
			t.Errorf("%s: at %d", r.name, got)
		}
	}
}
