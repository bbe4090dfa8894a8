package leaf

import (
	"strings"
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
	const null, class, load = "4883f800 7424 ", "48bf006400e45c7f0000 ", "8b5808 "
	const base, check = "49ba000000e35c7f0000 4c01d3 ", "483b7b38 0f85>0 c3"
	for _, r := range []struct {
		name, code string
		op         uint8
		want       string // for each instruction, whether it belongs to the cast
	}{
		{"a cast", null + class + load + base + check, vmstructs.OpCheckcast, "yyyyyyyyn"},
		{"a question for the class", null + class + load + base + check, vmstructs.OpInstanceof, "yyyyyyyyn"},
		{"past the end", strings.Replace(null, "7424", "7425", 1) + class + load + base + check, vmstructs.OpCheckcast,
			"nnyyyyyyn"},
		{"of another bytecode", null + class + load + base + check, vmstructs.OpGetfield, "nnnnnnnnn"},
		// mov [rax+16], rbx; mov [rsp+8], rbx
		{"a store in between", class + load + "48895810 " + base + check, vmstructs.OpCheckcast, "nnnnnnnn"},
		{"a copy to the stack", class + load + "48895c2408 " + base + check, vmstructs.OpCheckcast, "yyyyyyyn"},
		// mov ebx, [rax+12] in place of the class
		{"no class is loaded", class + "8b580c " + base + check, vmstructs.OpCheckcast, "nnnnnnn"},
		{"a call without a record", class + load + "e800000000 " + check, vmstructs.OpCheckcast, "yyyyyn"},
	} {
		u := newMadeUp(t)
		s := u.scopes(0)[0]
		u.f.bytecode[s.Method] = []vmstructs.Bytecode{{BCI: s.BCI, Op: r.op, Target: -1}}
		u.assemble(t, r.code, vmCall, "")
		for n, want := range r.want {
			e := questionIn(u.f, inC1(u), u.m).castAt(int32(n))
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
	top := disp(u.f.vm.AllocationTop())
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
		if e := questionIn(u.f, b, u.m).evidenceAt(1); e.kind != r.want {
			t.Errorf("%s: %+v", r.name, e)
		}
	}
}

// TestCastToListed: if a class may be in a list, all code that C1 makes for a cast to it belongs to the cast.
func TestCastToListed(t *testing.T) {
	// test rax, rax; je END; mov rsi, class; mov r11d, [rax+8]; cmp rsi, [r11+0x38]; je END; cmp r11, rsi; call;
	// test ebx, ebx; je; jmp END; END: mov rcx, rax; ret
	const cast = "4885c0 7426 48be0001000000000000 448b5808 493b7338 7412 4939f3 e800000000 85db 0f84>0 eb00 4889c1 c3"
	for _, r := range []struct {
		name, code string
		op         uint8
		from, to   int32 // the instructions of the cast
	}{
		{"a cast", cast, vmstructs.OpCheckcast, 0, 9},
		{"of an interface's receiver", cast, vmstructs.OpInvokeInterface, 0, 9},
		{"another bytecode", cast, vmstructs.OpGetfield, 0, -1},
		{"a branch to elsewhere", strings.Replace(cast, "7412", "7415", 1), vmstructs.OpCheckcast, 0, -1},
		{"a store in between", strings.Replace(cast, "4939f3", "895910", 1), vmstructs.OpCheckcast, 7, -1},
	} {
		u := newMadeUp(t)
		s := u.scopes(0)[0]
		u.f.bytecode[s.Method] = []vmstructs.Bytecode{{BCI: s.BCI, Op: r.op, Target: -1}}
		u.b.Level = 1
		u.assemble(t, r.code, vmCall, "")
		for n := range int32(13) {
			e := u.question().castAt(n)
			want := n >= r.from && n <= r.to
			if (e.kind == atCheck) != want || want && e.scope != u.b.Begin+uint64(u.records[0]) {
				t.Errorf("%s, instruction %d: %+v", r.name, n, e)
			}
		}
		q := u.question()
		if r.to == 9 && (q.notedWith(10) != 9 || q.notedWith(11) != 9 || q.notedWith(12) != 12) {
			t.Errorf("%s: behind it are %d, %d and %d", r.name, q.notedWith(10), q.notedWith(11), q.notedWith(12))
		}
	}
}
