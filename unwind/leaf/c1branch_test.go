package leaf

import (
	"testing"

	"goprof/vmstructs"
)

// TestBehindBranch: a branch to the first code of an inlined method belongs to its caller.
func TestBehindBranch(t *testing.T) {
	outer, middle := &vmstructs.Method{Name: "outer"}, &vmstructs.Method{Name: "middle"}
	inner := &vmstructs.Method{Name: "inner"}
	f := &Finder{bytecode: map[*vmstructs.Method][]vmstructs.Bytecode{
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
		if outer := f.behindBranch(r.scopes); outer != r.want {
			t.Errorf("%s: %d, not %d", r.name, outer, r.want)
		}
	}
}

// TestBranchOfC1: what a branch to an allocation shows. The record there describes the code behind the branch.
func TestBranchOfC1(t *testing.T) {
	for _, r := range []struct {
		name, code string
		inner      []vmstructs.Bytecode // of the innermost method of the record, which is at 6
		kind       evidenceKind
		outer      bool // the innermost method is left out
	}{
		// cmp eax, ecx; je to the allocation
		{"a branch of its own", "39c8 0f84>0 c3", []vmstructs.Bytecode{branch(0, vmstructs.OpIfeq, 9),
			bytecode(6, vmstructs.OpNew)}, atTrap, false},
		{"a branch of the caller", "39c8 0f84>0 c3", []vmstructs.Bytecode{bytecode(6, vmstructs.OpNew)}, atTrap, true},
		// cmp eax, -1: for a division
		{"a question for -1", "83f8ff 0f84>0 c3", []vmstructs.Bytecode{bytecode(6, vmstructs.OpNew)}, atTrap, false},
		// lock cmpxchg [rcx], edx
		{"a question for an exchange", "f00fb111 0f84>0 c3", []vmstructs.Bytecode{bytecode(6, vmstructs.OpNew)}, atTrap,
			false},
		// sub eax, ecx: as in the loop that clears an array
		{"a question for a difference", "29c8 0f84>0 c3", []vmstructs.Bytecode{bytecode(6, vmstructs.OpNew)}, noEvidence,
			false},
	} {
		u := newMadeUp(t)
		top := disp(u.f.vm.AllocationTop())
		u.assemble(t, r.code, vmCall, "498b87"+top+" 488d7820 0f8700000000") // mov rax, [r15+top]; lea; ja
		s := u.scopes(0)
		for i := range r.inner {
			r.inner[i].BCI += s[0].BCI - 6
			if r.inner[i].Target >= 0 {
				r.inner[i].Target += s[0].BCI - 6
			}
		}
		if len(s) < 2 {
			t.Fatal("no method is inlined there")
		}
		u.f.bytecode[s[0].Method] = r.inner
		caller := s[1]
		u.f.bytecode[caller.Method] = []vmstructs.Bytecode{branch(0, vmstructs.OpIfeq, caller.BCI)}
		b := inC1(u)
		e := questionIn(u.f, b, u.m).evidenceAt(1)
		told := questionIn(u.f, b, nil).methodsOf(e)
		if e.kind != r.kind || told != nil && (told[0].Method == caller.Method) != r.outer {
			t.Errorf("%s: %+v, %+v", r.name, e, told)
		}
	}
}

// TestBranchesOfC1Alone: branches that C1 makes where the program has none.
func TestBranchesOfC1Alone(t *testing.T) {
	u := newMadeUp(t)
	for _, r := range []struct {
		name, code string
		n          int32 // the branch
		loop, stub bool
	}{
		// je L; A: dec eax; jne A; L: nop
		{"past a loop", "7404 ffc8 75fc 90", 0, true, false},
		{"past a branch ahead", "7404 ffc8 7500 90", 0, false, false},
		{"past no branch", "7402 ffc8 90", 0, false, false},
		{"out of a loop", "ffc8 7402 75fa 90", 1, false, false},
		// A: nop; je A; mov rdi, rax; call; jmp A
		{"of a barrier's stub", "90 74fd 4889c7 e800000000 ebf3", 1, false, true},
		{"the stub goes on elsewhere", "90 74fd 4889c7 e800000000 eb00 90", 1, false, false},
		{"the stub calls nothing", "90 74fd 4889c7 0f1f440000 ebf3", 1, false, false},
		{"a return before", "90 74fd c3 e800000000 ebf5", 1, false, false},
	} {
		u.assemble(t, r.code, vmCall)
		if loop, stub := u.m.passesLoop(r.n), u.m.isOfStub(u.b, r.n); loop != r.loop || stub != r.stub {
			t.Errorf("%s: past a loop %v, of a stub %v", r.name, loop, stub)
		}
	}
}
