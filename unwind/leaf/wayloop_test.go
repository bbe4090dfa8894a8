package leaf

import (
	"encoding/hex"
	"slices"
	"testing"

	"goprof/arch"
	"goprof/arch/amd64"
	"goprof/vmstructs"
)

// TestLoopOnWay: code that leads back to itself past no evidence belongs to the only method on the way that has a loop.
// In a loop around an invoke, the code belongs to a method that only a profile shows if most of the work is there.
func TestLoopOnWay(t *testing.T) {
	const add, virtual = vmstructs.OpIadd, vmstructs.OpInvoke
	caller := &vmstructs.Method{Name: "caller", Addr: 0x1000}
	one := &vmstructs.Method{Name: "one", Addr: 0x2000}
	other := &vmstructs.Method{Name: "other", Addr: 0x3000}
	straight := []vmstructs.Bytecode{bytecode(0, add), bytecode(1, vmstructs.OpReturn)}
	round := []vmstructs.Bytecode{bytecode(0, add), branch(1, opIfeq, 0), bytecode(4, vmstructs.OpReturn)}
	calls := []vmstructs.Bytecode{bytecode(0, virtual), bytecode(3, virtual), bytecode(6, vmstructs.OpReturn)}
	around := []vmstructs.Bytecode{bytecode(0, virtual), bytecode(3, virtual), branch(6, opIfeq, 0),
		bytecode(9, vmstructs.OpReturn)}
	in := func(m *vmstructs.Method, bci int32) []vmstructs.Scope {
		return []vmstructs.Scope{{Method: m}, {Method: caller, BCI: bci}}
	}
	for _, r := range []struct {
		name               string
		code               string
		caller, one, other []vmstructs.Bytecode
		work               int  // of one; other has 2, and the caller 3
		byProfile          bool // a profile shows one
		want               *vmstructs.Method
	}{
		{"the only loop", "ffc0 ffc1 7cfa c3", calls, round, straight, 1, false, one},
		{"whoever tells its method", "ffc0 ffc1 7cfa c3", calls, round, straight, 1, true, one},
		{"no loop in the code", "ffc0 ffc1 90 c3", calls, round, straight, 1, false, nil},
		{"no loop on the way", "ffc0 ffc1 7cfa c3", calls, straight, straight, 1, false, nil},
		{"two loops", "ffc0 ffc1 7cfa c3", calls, round, round, 1, false, nil},
		{"a loop in a loop", "ffc0 ffc1 7cfa c3", around, straight, round, 50, true, other},
		{"a loop around much work", "ffc0 ffc1 7cfa c3", around, straight, straight, 50, true, one},
		{"a loop around some work", "ffc0 ffc1 7cfa c3", around, straight, straight, 6, true, nil},
		{"a loop around work that is told", "ffc0 ffc1 7cfa c3", around, straight, straight, 50, false, nil},
	} {
		f := &Finder{cpu: amd64.CPU,
			callees:  map[invokeSite]knownInvoke{{caller, 0}: {whole: true}, {caller, 3}: {whole: true}},
			bytecode: map[*vmstructs.Method][]vmstructs.Bytecode{caller: r.caller, one: r.one, other: r.other}}
		code, err := hex.DecodeString(withoutSpaces(r.code))
		if err != nil {
			t.Fatal(err)
		}
		m := &codeMap{cpu: f.cpu, tree: &vmstructs.SiteTable{}}
		m.begin(code, 0, func(func(uint64) bool) {})
		m.place(0)
		for i := range m.list {
			m.list[i].filled = true // nothing
			if m.list[i].flow == arch.FlowReturn {
				m.list[i].kind = atReturn
			}
		}
		own := []vmstructs.Scope{{Method: caller}}
		way := router{q: questionIn(f, &vmstructs.Blob{Level: levelC2}, m), legs: []leg{
			{scopes: own, work: 1}, {scopes: in(one, 0), work: r.work, byProfile: r.byProfile}, {scopes: own, work: 1},
			{scopes: in(other, 3), work: 2}, {scopes: own, work: 1}}}
		var got *vmstructs.Method
		if s := way.loopOnWay(); s != nil {
			got = s[0].Method
		}
		if got != r.want {
			t.Errorf("%s: %v, not %v", r.name, got, r.want)
		}
	}
}

// TestLoopsOnlyIn: if all loops on the way belong to the supposed methods, there is no search.
func TestLoopsOnlyIn(t *testing.T) {
	round := &vmstructs.Method{Name: "round", Addr: 0x1000}
	straight := &vmstructs.Method{Name: "straight", Addr: 0x2000}
	f := &Finder{bytecode: map[*vmstructs.Method][]vmstructs.Bytecode{
		round:    {bytecode(0, vmstructs.OpIadd), branch(1, opIfeq, 0), bytecode(4, vmstructs.OpReturn)},
		straight: {bytecode(0, vmstructs.OpIadd), branch(1, opIfeq, 4), bytecode(4, vmstructs.OpReturn)},
	}}
	in := func(m *vmstructs.Method) []vmstructs.Scope { return []vmstructs.Scope{{Method: m}} }
	for _, r := range []struct {
		name     string
		legs     []leg
		supposed *vmstructs.Method
		want     bool
	}{
		{"its own loop", []leg{{scopes: in(round)}, {scopes: in(straight)}}, round, true},
		{"another's loop", []leg{{scopes: in(straight)}, {scopes: in(round)}}, straight, false},
		{"no loop", []leg{{scopes: in(straight)}}, straight, true},
		{"by a profile", []leg{{scopes: in(straight), byProfile: true}}, straight, false},
		{"in a loop that the way leads past", []leg{{scopes: in(straight), entered: true}}, straight, false},
	} {
		way := router{q: questionIn(f, &vmstructs.Blob{}, &codeMap{tree: &vmstructs.SiteTable{}}), legs: r.legs}
		if got := way.loopsOnlyIn(in(r.supposed)); got != r.want {
			t.Errorf("%s: %v", r.name, got)
		}
	}
}

// TestEnterLoops: if the way leads past a loop in which methods are inlined, and the code goes around that loop, and no
// record describes the loop, the legs around it are added.
func TestEnterLoops(t *testing.T) {
	const static = vmstructs.OpInvokeStatic
	owner := &vmstructs.Method{Name: "owner", Addr: 0x1000}
	small := &vmstructs.Method{Name: "small", Addr: 0x2000, CodeSize: 40}
	body := make([]vmstructs.Bytecode, 40)
	for i := range body {
		body[i] = bytecode(int32(i), vmstructs.OpIadd)
	}
	body[39].Op = vmstructs.OpReturn
	calls := vmstructs.Invocation{Method: small}
	head, back := branch(0, opIfeq, 10), branch(7, vmstructs.OpGoto, 0)
	end := bytecode(10, vmstructs.OpReturn)
	for _, r := range []struct {
		name     string
		code     string
		loop     []vmstructs.Bytecode // of the method that owns the code
		recorded uint64               // what is recorded at the invoke
		want     *vmstructs.Method
	}{
		{"past a loop around a small method", "ffc0 ffc1 7cfa c3",
			[]vmstructs.Bytecode{head, bytecode(3, static), back, end}, 0, small},
		{"the code has no loop", "ffc0 ffc1 90 c3",
			[]vmstructs.Bytecode{head, bytecode(3, static), back, end}, 0, nil},
		{"a loop without an invoke", "ffc0 ffc1 7cfa c3",
			[]vmstructs.Bytecode{head, bytecode(3, vmstructs.OpIadd), back, end}, 0, owner},
		{"a record says that it is called", "ffc0 ffc1 7cfa c3",
			[]vmstructs.Bytecode{head, bytecode(3, static), back, end}, isCalled, owner},
		{"a record says that it is inlined", "ffc0 ffc1 7cfa c3",
			[]vmstructs.Bytecode{head, bytecode(3, static), back, end}, small.Addr, nil},
		{"no way to the loop", "ffc0 ffc1 7cfa c3",
			[]vmstructs.Bytecode{branch(0, vmstructs.OpGoto, 10), bytecode(3, static),
				branch(7, vmstructs.OpGoto, 3), end}, 0, nil},
	} {
		f := &Finder{cpu: amd64.CPU,
			callees:  map[invokeSite]knownInvoke{{owner, 3}: {whole: true, Invocation: calls}},
			bytecode: map[*vmstructs.Method][]vmstructs.Bytecode{owner: r.loop, small: body}}
		code, err := hex.DecodeString(withoutSpaces(r.code))
		if err != nil {
			t.Fatal(err)
		}
		own := []vmstructs.Scope{{Method: owner}}
		m := &codeMap{cpu: f.cpu, tree: &vmstructs.SiteTable{}}
		if r.recorded != 0 {
			tree := vmstructs.NewSiteTable(1)
			tree.Set(vmstructs.PlaceOf(own).Site(3), r.recorded)
			m.tree = &tree
		}
		m.begin(code, 0, func(func(uint64) bool) {})
		m.place(0)
		for i := range m.list {
			m.list[i].filled = true // nothing
		}
		way := router{q: questionIn(f, &vmstructs.Blob{Level: levelC2}, m), guess: true}
		way.weights = weightsOf(levelC2)
		way.through(own, 0, false, 10, false)
		way.enterLoops()
		var got *vmstructs.Method
		if s := way.loopOnWay(); s != nil {
			got = s[0].Method
		}
		if got != r.want {
			t.Errorf("%s: %v, not %v", r.name, got, r.want)
		}
		entered := slices.ContainsFunc(way.legs, func(g leg) bool { return g.entered })
		if entered != (r.want == small) {
			t.Errorf("%s: legs were added: %v", r.name, entered)
		}
	}
}
