package leaf

import (
	"encoding/binary"
	"encoding/hex"
	"testing"

	"goprof/vmstructs"
)

// TestMayCheck: which bytecodes have which checks.
func TestMayCheck(t *testing.T) {
	code := func(op uint8) vmstructs.Bytecode { return vmstructs.Bytecode{Op: op, Target: -1} }
	load, cast, add := code(vmstructs.OpIaload), code(vmstructs.OpCheckcast), code(vmstructs.OpIadd)
	makes, array, returns := code(vmstructs.OpNew), code(vmstructs.OpAnewarray), code(vmstructs.OpReturn)
	static := code(vmstructs.OpGetstatic)
	branch := vmstructs.Bytecode{Op: vmstructs.OpGoto - 1, Target: 7}
	jump := vmstructs.Bytecode{Op: vmstructs.OpGoto, Target: 7}
	for _, r := range []struct {
		b      vmstructs.Bytecode
		reason vmstructs.TrapReason
		want   bool
	}{
		{load, vmstructs.TrapRange, true}, {cast, vmstructs.TrapRange, false},
		{cast, vmstructs.TrapClass, true}, {add, vmstructs.TrapClass, false},
		{load, vmstructs.TrapNull, true}, {add, vmstructs.TrapNull, false},
		{branch, vmstructs.TrapBranch, true}, {cast, vmstructs.TrapBranch, false},
		{branch, vmstructs.TrapNull, true}, {jump, vmstructs.TrapNull, false},
		// Whatever the rule says: if it says new where the record has an array or an invoke, that is judged.
		{makes, vmstructs.NoTrap, true}, {array, vmstructs.NoTrap, true}, {code(vmstructs.OpInvoke), vmstructs.NoTrap, true},
		{cast, vmstructs.NoTrap, true}, {load, vmstructs.NoTrap, false}, {returns, vmstructs.NoTrap, false},
		{static, vmstructs.TrapOther, true}, {makes, vmstructs.TrapOther, true}, {load, vmstructs.TrapOther, true},
		{add, vmstructs.TrapOther, false}, {returns, vmstructs.TrapOther, false},
		{add, vmstructs.TrapBeforeLoop, false},
	} {
		if got := mayCheck(&vmstructs.Method{}, &r.b, r.reason); got != r.want {
			t.Errorf("%#x, reason %d: %v", r.b.Op, r.reason, got)
		}
	}
	if !mayCheck(&vmstructs.Method{Synchronized: true}, &returns, vmstructs.NoTrap) {
		t.Error("a return gives back no monitor")
	}
}

// TestMayBeCheck: which checks an invoke has depends on the method that it calls.
func TestMayBeCheck(t *testing.T) {
	const static, special, virtual = vmstructs.OpInvokeStatic, vmstructs.OpInvokeSpecial, vmstructs.OpInvoke
	method := func(class, signature string) *vmstructs.Method {
		return &vmstructs.Method{Class: class, Signature: signature}
	}
	calls := func(class, signature string) vmstructs.Invocation {
		return vmstructs.Invocation{Method: method(class, signature)}
	}
	intrinsic := func(class, signature string) vmstructs.Invocation {
		return vmstructs.Invocation{Method: method(class, signature), Intrinsic: true}
	}
	plain, made := calls("A", "()V"), intrinsic("A", "()V")
	for _, r := range []struct {
		name   string
		op     uint8
		calls  vmstructs.Invocation
		reason vmstructs.TrapReason
		want   bool
	}{
		{"the class of a receiver", virtual, plain, vmstructs.TrapClass, true},
		{"the class for one method alone", special, plain, vmstructs.TrapClass, false},
		{"the class for an intrinsic method", static, made, vmstructs.TrapClass, true},
		{"the class, nobody knows for which", static, vmstructs.Invocation{}, vmstructs.TrapClass, true},
		{"bounds for a method", virtual, plain, vmstructs.TrapRange, false},
		{"bounds for an intrinsic method", virtual, made, vmstructs.TrapRange, true},
		{"null for a receiver", special, plain, vmstructs.TrapNull, true},
		{"null for nothing", static, plain, vmstructs.TrapNull, false},
		{"null for the receiver of an intrinsic method", virtual, made, vmstructs.TrapNull, true},
		{"null for an array of an intrinsic method", static, intrinsic("A", "([BI)V"), vmstructs.TrapNull, true},
		{"null for an object of it", static, intrinsic("A", "(ILB;)V"), vmstructs.TrapNull, true},
		{"null for a number of it", static, intrinsic("A", "(I)[B"), vmstructs.TrapNull, false},
		{"null for Unsafe", virtual, intrinsic("jdk.internal.misc.Unsafe", "(LA;J)I"), vmstructs.TrapNull, false},
		{"of which class Unsafe is to make one", virtual, vmstructs.Invocation{Intrinsic: true, Method: &vmstructs.Method{
			Class: "jdk.internal.misc.Unsafe", Name: "allocateInstance", Signature: "(LA;)LB;"}}, vmstructs.TrapNull, true},
		{"null for Unsafe of 8", virtual, intrinsic("sun.misc.Unsafe", "(LA;J)I"), vmstructs.TrapNull, false},
		{"a slow path for a method", virtual, plain, vmstructs.NoTrap, false},
		{"a slow path for an intrinsic method", static, made, vmstructs.NoTrap, true},
		{"a class that is not loaded", static, plain, vmstructs.TrapOther, true},
		{"bounds of an array", vmstructs.OpIaload, plain, vmstructs.TrapRange, true},
		{"bounds of no array", vmstructs.OpIadd, plain, vmstructs.TrapRange, false},
	} {
		f, s := invokes(r.op, r.calls)
		if got := f.mayBeCheck(s, r.reason); got != r.want {
			t.Errorf("%s: %v", r.name, got)
		}
	}
}

// invokes makes a place at a bytecode that calls a method, if the bytecode is an invoke.
func invokes(op uint8, calls vmstructs.Invocation) (*Finder, vmstructs.Scope) {
	m := &vmstructs.Method{}
	return &Finder{bytecode: map[*vmstructs.Method][]vmstructs.Bytecode{m: {{Op: op, Target: -1}}},
		callees: map[invokeSite]knownInvoke{{m, 0}: {Invocation: calls, whole: true}}}, vmstructs.Scope{Method: m}
}

// TestMayMake: for which bytecodes C2 makes an object.
func TestMayMake(t *testing.T) {
	named := func(name string, intrinsic bool) vmstructs.Invocation {
		return vmstructs.Invocation{Method: &vmstructs.Method{Name: name}, Intrinsic: intrinsic}
	}
	for _, r := range []struct {
		name  string
		op    uint8
		calls vmstructs.Invocation
		want  bool
	}{
		{"new", vmstructs.OpNew, vmstructs.Invocation{}, true},
		{"an array", vmstructs.OpAnewarray, vmstructs.Invocation{}, true},
		{"a load", vmstructs.OpIaload, vmstructs.Invocation{}, false},
		{"a copy", vmstructs.OpInvoke, named("clone", true), true},
		{"a part of an array", vmstructs.OpInvokeStatic, named("copyOfRange", true), true},
		{"an intrinsic method that makes nothing", vmstructs.OpInvokeStatic, named("currentThread", true), false},
		{"a method", vmstructs.OpInvokeStatic, named("copyOf", false), false},
		{"nobody knows which method", vmstructs.OpInvoke, vmstructs.Invocation{}, true},
	} {
		f, s := invokes(r.op, r.calls)
		if got := f.mayMake(s); got != r.want {
			t.Errorf("%s: %v", r.name, got)
		}
	}
}

// TestMayPollAndBranch: a poll belongs to a backward branch. A test of an order belongs to a branch or a comparison.
func TestMayPollAndBranch(t *testing.T) {
	const poll, order, same = "poll", "order", "same"
	for _, r := range []struct {
		name  string
		b     vmstructs.Bytecode
		calls vmstructs.Invocation
		want  string
	}{
		{"a jump back", vmstructs.Bytecode{BCI: 9, Op: vmstructs.OpGoto, Target: 2}, vmstructs.Invocation{}, poll},
		{"a jump forward", vmstructs.Bytecode{BCI: 9, Op: vmstructs.OpGoto, Target: 12}, vmstructs.Invocation{}, ""},
		{"a branch back", vmstructs.Bytecode{BCI: 9, Op: vmstructs.OpIfeq, Target: 2}, vmstructs.Invocation{},
			poll + order + same},
		{"a branch forward", vmstructs.Bytecode{BCI: 9, Op: vmstructs.OpIfeq, Target: 12}, vmstructs.Invocation{},
			order + same},
		{"a load", vmstructs.Bytecode{BCI: 9, Op: vmstructs.OpGetfield, Target: -1}, vmstructs.Invocation{}, same},
		{"a comparison", vmstructs.Bytecode{BCI: 9, Op: vmstructs.OpLcmp, Target: -1}, vmstructs.Invocation{}, order + same},
		{"a sum", vmstructs.Bytecode{BCI: 9, Op: vmstructs.OpIadd, Target: -1}, vmstructs.Invocation{}, ""},
		{"an intrinsic method", vmstructs.Bytecode{BCI: 9, Op: vmstructs.OpInvokeStatic, Target: -1},
			vmstructs.Invocation{Method: &vmstructs.Method{}, Intrinsic: true}, order + same},
		{"a method", vmstructs.Bytecode{BCI: 9, Op: vmstructs.OpInvoke, Target: -1},
			vmstructs.Invocation{Method: &vmstructs.Method{}}, same},
	} {
		m := &vmstructs.Method{}
		f := &Finder{bytecode: map[*vmstructs.Method][]vmstructs.Bytecode{m: {r.b}},
			callees: map[invokeSite]knownInvoke{{m, 9}: {Invocation: r.calls, whole: true}}}
		s, got := vmstructs.Scope{Method: m, BCI: 9}, ""
		if questionIn(f, nil, nil).at(0).mayPoll(s) {
			got += poll
		}
		if f.mayBeBranch(s, true) {
			got += order
		}
		if f.mayBeBranch(s, false) {
			got += same
		}
		if got != r.want {
			t.Errorf("%s: %q", r.name, got)
		}
	}
	f, s := invokes(vmstructs.OpGoto, vmstructs.Invocation{})
	if s.BCI = 5; questionIn(f, nil, nil).at(0).mayPoll(s) {
		t.Error("a poll of no bytecode")
	}
}

// TestCountedCode: in C1's code that counts, the true method is the one whose counter it is, if the record has it.
func TestCountedCode(t *testing.T) {
	u := newMadeUp(t)
	s, data := u.profiled(t)
	other := vmstructs.Scope{Method: &vmstructs.Method{Name: "other"}}
	record := append([]vmstructs.Scope{other}, s...)
	b := *u.b
	b.Level = levelProfiled
	// mov rdi, rax; movabs rbx, data; add [rbx+0x108], 1; add eax, ecx; ret
	u.assemble(t, "4889c7 48bb"+hex64(data)+" 4883830801000001 01c8 c3", vmCall)
	u.f.codeMaps = map[*vmstructs.Blob]*codeMap{&b: u.m, u.b: u.m}
	m := u.m
	for n, want := range []string{"copy", "its method", "its method", "nothing", "nothing"} {
		got, no := u.f.Counted(&b, b.Begin+uint64(m.list[n].at), record)
		told := "nothing"
		switch {
		case no:
			told = "copy"
		case got != nil && got[0].Method == s[0].Method:
			told = "its method"
		}
		if told != want {
			t.Errorf("instruction %d: %s, not %s", n, told, want)
		}
	}
	if computes := u.f.Computes(&b, b.Begin+uint64(m.list[3].at)); !computes {
		t.Error("a sum computes")
	}
	if u.f.Computes(&b, b.Begin) || u.f.Computes(u.b, b.Begin+uint64(m.list[3].at)) {
		t.Error("a copy, and what C2 makes, are no arithmetic without a record")
	}
}

func hex64(n uint64) string { return hex.EncodeToString(binary.LittleEndian.AppendUint64(nil, n)) }
