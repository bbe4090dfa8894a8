package leaf

import (
	"strings"
	"testing"

	"goprof/arch"
	"goprof/arch/amd64"
	"goprof/vmstructs"
)

// constant makes a bytecode that puts a number onto the operand stack: sipush.
func constant(bci int32, value int16) vmstructs.Bytecode {
	return vmstructs.Bytecode{BCI: bci, Op: 0x11, Index: uint16(value), Target: -1}
}

// TestBranchesOn: for which branches C2 can have made a condition. The last bytecode is the branch.
func TestBranchesOn(t *testing.T) {
	const local, lcmp, dcmpg, ldc = 0x1a, vmstructs.OpLcmp, vmstructs.OpDcmpg, vmstructs.OpLdc
	const ifeq, iflt, ifle, icmpne, icmplt = vmstructs.OpIfeq, 0x9b, vmstructs.OpIfle, 0xa0, 0xa1
	ops := func(ops ...uint8) (code []vmstructs.Bytecode) {
		for i, op := range ops {
			code = append(code, bytecode(int32(i), op))
		}
		return code
	}
	zero := func(is arch.Relation) arch.Condition { return arch.Condition{Is: is, Constant: true} }
	wide := func(is arch.Condition) arch.Condition { is.Wide = true; return is }
	memory := func(is arch.Condition) arch.Condition { is.InMemory = true; return is }
	two := func(is arch.Relation) arch.Condition { return arch.Condition{Is: is} }
	with := func(is arch.Relation, value int64) arch.Condition {
		return arch.Condition{Is: is, Constant: true, Value: value}
	}
	for _, r := range []struct {
		name string
		code []vmstructs.Bytecode
		is   arch.Condition
		want bool
	}{
		{"zero", ops(local, ifeq), zero(arch.Equal), true},
		{"not zero", ops(local, ifeq), zero(arch.NotEqual), false},
		{"less than zero", ops(local, iflt), zero(arch.Less), true},
		{"at most zero", ops(local, ifle), zero(arch.NotGreater), true},
		{"one", ops(local, ifeq), with(arch.Equal, 1), false},
		{"zero of 64 bits", ops(local, ifeq), wide(zero(arch.Equal)), false},
		{"a register in place of zero", ops(local, ifeq), two(arch.Equal), false},
		{"zero in memory", ops(local, ifeq), memory(zero(arch.Equal)), false},
		{"what an invoke returns", ops(vmstructs.OpInvoke, ifeq), zero(arch.Equal), false},
		{"two numbers", ops(local, local, icmplt), two(arch.Less), true},
		{"the other way around", ops(local, local, icmplt), two(arch.Greater), true},
		{"two, but another relation", ops(local, local, icmplt), two(arch.NotGreater), false},
		{"of which one is in memory", ops(local, local, icmpne), memory(two(arch.NotEqual)), true},
		{"two of 64 bits", ops(local, local, icmplt), wide(two(arch.Less)), false},
		{"a number for two", ops(local, local, icmplt), with(arch.Less, 4), false},
		{"a number", []vmstructs.Bytecode{bytecode(0, local), constant(1, 44), bytecode(4, icmplt)},
			with(arch.Less, 44), true},
		{"a negative one", []vmstructs.Bytecode{bytecode(0, local), constant(1, -44), bytecode(4, icmplt)},
			with(arch.Less, -44), true},
		{"another number", []vmstructs.Bytecode{bytecode(0, local), constant(1, 45), bytecode(4, icmplt)},
			with(arch.Less, 44), false},
		{"a number, the other way around", []vmstructs.Bytecode{bytecode(0, local), constant(1, 44), bytecode(4, icmplt)},
			with(arch.Greater, 44), false},
		{"two for a number", []vmstructs.Bytecode{bytecode(0, local), constant(1, 44), bytecode(4, icmplt)},
			two(arch.Less), false},
		{"a number that is not known", ops(local, ldc, icmplt), with(arch.Less, 44), false},
		{"null", ops(local, vmstructs.OpIfnull), wide(zero(arch.Equal)), true},
		{"null, compressed", ops(local, vmstructs.OpIfnonnull), zero(arch.NotEqual), true},
		{"less than null", ops(local, vmstructs.OpIfnull), zero(arch.Less), false},
		{"two references", ops(local, local, vmstructs.OpIfacmpne), two(arch.NotEqual), true},
		{"two that are the same", ops(local, local, vmstructs.OpIfacmpne), two(arch.Equal), false},
		{"a reference and null", ops(local, local, vmstructs.OpIfacmpeq), zero(arch.Equal), false},
		{"two longs", ops(local, local, lcmp, iflt), wide(two(arch.Less)), true},
		{"two ints for two longs", ops(local, local, lcmp, iflt), two(arch.Less), false},
		{"a long and a number", ops(local, 0x0a, lcmp, iflt), wide(with(arch.Less, 1)), false}, // decoded, it would be 1
		{"two doubles", ops(local, local, dcmpg, iflt), zero(arch.Less), false},
		{"a jump", ops(local, vmstructs.OpGoto), zero(arch.Equal), false},
	} {
		if got := branchesOn(r.code, len(r.code)-1, r.is); got != r.want {
			t.Errorf("%s: %v", r.name, got)
		}
	}
}

// parted are two routes through a method and what is inlined there:
//
//	0 load, 1 ifeq 5, 4 load, 5 load, 6 invoke inner, 9 load, 10 load, 11 if_icmplt 16, 14 load, 16 return
//
// inner: 0 load, 1 ifnull 5, 4 return, 5 return. Its caller does not test what it returns.
type parted struct {
	f            *Finder
	outer, inner *vmstructs.Method
}

func newParted() *parted {
	const local = 0x1a
	p := &parted{outer: &vmstructs.Method{Name: "outer"}, inner: &vmstructs.Method{Name: "inner"}}
	p.f = &Finder{cpu: amd64.CPU, bytecode: map[*vmstructs.Method][]vmstructs.Bytecode{
		p.outer: {bytecode(0, local), branch(1, vmstructs.OpIfeq, 5), bytecode(4, local), bytecode(5, local),
			bytecode(6, vmstructs.OpInvoke), bytecode(9, local), bytecode(10, local), branch(11, 0xa1, 16),
			bytecode(14, local), bytecode(16, vmstructs.OpReturn)},
		p.inner: {bytecode(0, local), branch(1, vmstructs.OpIfnull, 5), bytecode(4, vmstructs.OpReturn),
			bytecode(5, vmstructs.OpReturn)},
	}, callees: map[invokeSite]knownInvoke{{p.outer, 6}: {Invocation: vmstructs.Invocation{Method: p.inner}, whole: true}}}
	return p
}

// trail makes a route from bytecodes of outer. Numbers below zero are bytecodes of inner: -1 is the first, at 0.
func (p *parted) trail(bcis ...int32) (trail []trailed) {
	for _, bci := range bcis {
		chain := []vmstructs.Scope{{Method: p.outer}}
		if bci < 0 {
			chain = []vmstructs.Scope{{Method: p.inner}, {Method: p.outer, BCI: 6}}
			bci = -bci - 1
		}
		trail = append(trail, trailed{chain, bci})
	}
	return trail
}

// TestParting: two routes part at a branch that the code agrees with.
func TestParting(t *testing.T) {
	p := newParted()
	equal := arch.Condition{Is: arch.Equal, Constant: true}
	isNull := arch.Condition{Is: arch.Equal, Constant: true, Wide: true}
	notEqual := arch.Condition{Is: arch.NotEqual, Constant: true}
	for _, r := range []struct {
		name        string
		taken, next []trailed
		is          arch.Condition
		want        *vmstructs.Method
		bci         int32
	}{
		{"at a branch", p.trail(0, 1, 5, 6), p.trail(0, 1, 4, 5), equal, p.outer, 1},
		{"at a branch that is not taken there", p.trail(0, 1, 5, 6), p.trail(0, 1, 4, 5), notEqual, nil, 0},
		{"the code goes on where the bytecode branches", p.trail(0, 1, 4, 5), p.trail(0, 1, 5, 6), notEqual, p.outer, 1},
		{"at a branch of another kind", p.trail(0, 1, 5), p.trail(0, 1, 4), arch.Condition{Is: arch.Equal}, nil, 0},
		{"in a method that is inlined", p.trail(5, 6, -1, -2, -6), p.trail(5, 6, -1, -2, -5), isNull, p.inner, 1},
		{"not at all", p.trail(0, 1, 5), p.trail(0, 1, 5), equal, nil, 0},
		{"one goes on", p.trail(0, 1, 5), p.trail(0, 1), equal, nil, 0},
		{"at no branch", p.trail(5, 6, 9), p.trail(5, 6, -1), equal, nil, 0},
		{"they go on in other methods", p.trail(0, 1, -1), p.trail(0, 1, 4), equal, nil, 0},
		{"at the begin", p.trail(4, 5), p.trail(0, 1), equal, nil, 0},
		{"they go on elsewhere", p.trail(0, 1, 9), p.trail(0, 1, 4), equal, nil, 0},
		{"no routes", nil, nil, equal, nil, 0},
	} {
		s := p.f.parting(r.taken, r.next, r.is)
		if (s != nil) != (r.want != nil) || s != nil && (s[0].Method != r.want || s[0].BCI != r.bci) {
			t.Errorf("%s: %+v", r.name, s)
		}
	}
}

// TestOnlyBranch: if all branches that agree with the code are of one method, that method is known. Otherwise none is.
func TestOnlyBranch(t *testing.T) {
	p := newParted()
	equal, two := arch.Condition{Is: arch.Equal, Constant: true}, arch.Condition{Is: arch.Less}
	for _, r := range []struct {
		name      string
		one, more []trailed
		is        arch.Condition
		intrinsic bool // whether inner is an intrinsic method
		want      *vmstructs.Method
		meets     bool
	}{
		{name: "one", one: p.trail(9, 10, 11, 14), is: two, want: p.outer, meets: true},
		{name: "on the second route", one: p.trail(9, 10), more: p.trail(9, 10, 11, 14), is: two, want: p.outer, meets: true},
		{name: "none", one: p.trail(0, 1, 4), is: two},
		{name: "two methods", one: p.trail(0, 1, 5, 6, -1, -2), is: equal},
		{name: "one of two kinds", one: p.trail(0, 1, 5, 6, 9, 10, 11), is: equal, want: p.outer, meets: true},
		{name: "an intrinsic method on the way", one: p.trail(0, 1, 5, 6, 9), is: equal, intrinsic: true, want: p.outer},
	} {
		p.f.callees[invokeSite{p.outer, 6}] = knownInvoke{whole: true,
			Invocation: vmstructs.Invocation{Method: p.inner, Intrinsic: r.intrinsic}}
		at := question{Finder: p.f, trails: [2][]trailed{r.one, r.more}}
		s, meets := at.onlyBranch(r.is, true)
		if (s != nil) != (r.want != nil) || meets != r.meets || s != nil && s[0].Method != r.want {
			t.Errorf("%s: %+v, %v", r.name, s, meets)
		}
	}
	// If the caller tests what inner returns, C2 makes one branch of two.
	p.f.bytecode[p.outer][5] = branch(9, vmstructs.OpIfeq, 14)
	at := question{Finder: p.f, trails: [2][]trailed{p.trail(6, -1, -2, -6), nil}}
	if s, _ := at.onlyBranch(equal, true); s != nil {
		t.Errorf("a branch of two methods: %+v", s)
	}
}

func TestComparisonAndBranch(t *testing.T) {
	for _, r := range []struct {
		name, code      string
		n               int32
		compare, branch int32
	}{
		{"a comparison", "8bc3 85c0 7402 9090 c3", 1, 1, 2},
		{"its branch", "8bc3 85c0 7402 9090 c3", 2, 1, 2},
		{"before a comparison", "8bc3 85c0 7402 9090 c3", 0, notInCode, notInCode},
		{"a branch without a comparison", "8bc3 7402 9090 c3", 1, 1, 1},
		{"a comparison for something else", "85c0 0f44c3 7402 9090 c3", 0, notInCode, notInCode},
		{"a branch out of the code", "85c0 747f c3", 0, notInCode, notInCode},
		{"the code ends", "85c0", 0, notInCode, notInCode},
	} {
		m := &codeMap{cpu: amd64.CPU}
		m.begin(unhex(t, r.code), 0, func(func(uint64) bool) {})
		m.place(0)
		if compare, branch := m.comparisonAndBranch(r.n); compare != r.compare || branch != r.branch {
			t.Errorf("%s: %d and %d", r.name, compare, branch)
		}
	}
}

// TestBranchAt: a branch between two traps of an nmethod. The code behind the method's beginning compares, and
// branches to code with the one trap; behind the branch stands code with the other. In the innermost method that both
// traps have in common, an ifeq leads to the later bytecode.
func TestBranchAt(t *testing.T) {
	const compare, sum = "85c0 ", "01c0 "
	for _, r := range []struct {
		name, code string
		want       bool
	}{
		// the comparison; je or jne; nop; the branch to a trap; ret; the branch to the other trap; ret
		{"as the bytecode has it", compare + "7408 90 0f84>E c3 0f84>L c3", true},
		{"the other way around", compare + "7508 90 0f84>L c3 0f84>E c3", true},
		{"another condition", compare + "7508 90 0f84>E c3 0f84>L c3", false},
		{"not of zero", "85c3 7408 90 0f84>E c3 0f84>L c3", false},
		{"no comparison", sum + "7408 90 0f84>E c3 0f84>L c3", false},
		{"both lead to one trap", compare + "7408 90 0f84>L c3 0f84>L c3", false},
		{"a check", compare + "0f84>E 90 0f84>L c3 0f84>L c3", false},
		{"the first of two to the same place", compare + "740c 85c9 7408 90 0f84>E c3 0f84>L c3", true},
	} {
		u := newMadeUp(t)
		one, other := u.scopes(0), u.scopes(1)
		i, j := len(one)-1, len(other)-1
		for i > 0 && j > 0 && one[i] == other[j] {
			i, j = i-1, j-1
		}
		a, b, early, late := one[i], other[j], "0", "1"
		if a.Method != b.Method || a.BCI == b.BCI {
			t.Fatalf("%+v and %+v", a, b)
		}
		if a.BCI > b.BCI {
			a, b, early, late = b, a, late, early
		}
		op := uint8(vmstructs.OpIadd)
		u.f.bytecode[a.Method] = []vmstructs.Bytecode{bytecode(a.BCI-3, 0x1a), branch(a.BCI-2, vmstructs.OpIfeq, b.BCI),
			bytecode(a.BCI, op), bytecode(b.BCI, op), bytecode(b.BCI+3, vmstructs.OpReturn)}
		code := strings.NewReplacer("E", early, "L", late).Replace(r.code)
		u.assemble(t, code, trapCall, u.request(t, vmstructs.TrapNull), u.request(t, vmstructs.TrapNull))
		for n := range int32(2) { // the comparison and the branch
			s := u.question().at(n).branch().scopes
			if (s != nil) != r.want || s != nil && (s[0].Method != a.Method || s[0].BCI != a.BCI-2) {
				t.Errorf("%s, instruction %d: %+v", r.name, n, s)
			}
		}
		if strings.Contains(r.name, "first of two") {
			for n := int32(2); n < 4; n++ {
				if s := u.question().at(n).branch().scopes; s != nil {
					t.Errorf("the second of two, instruction %d: %+v", n, s)
				}
			}
		}
	}
}
