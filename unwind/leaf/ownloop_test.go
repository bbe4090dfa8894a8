package leaf

import (
	"encoding/hex"
	"testing"

	"goprof/arch"
	"goprof/arch/amd64"
	"goprof/profile"
	"goprof/vmstructs"
)

func bytecode(bci int32, op uint8) vmstructs.Bytecode {
	return vmstructs.Bytecode{BCI: bci, Op: op, Target: -1}
}

func branch(bci int32, op uint8, to int32) vmstructs.Bytecode {
	return vmstructs.Bytecode{BCI: bci, Op: op, Target: to}
}

const opIfeq = 0x99

// TestLoopAround: the smallest loop that contains two bytecodes. An inner loop from 4 to 8 stands in a loop from 2 to
// 12, which also goes back to its beginning from 10.
func TestLoopAround(t *testing.T) {
	code := []vmstructs.Bytecode{bytecode(0, vmstructs.OpIadd), bytecode(2, vmstructs.OpIadd),
		bytecode(4, vmstructs.OpIadd), branch(6, opIfeq, 14), branch(8, vmstructs.OpGoto, 4), branch(10, opIfeq, 2),
		branch(12, vmstructs.OpGoto, 2), bytecode(14, vmstructs.OpReturn)}
	for _, r := range []struct{ first, last, begin, end int32 }{
		{4, 6, 4, 8}, {8, 8, 4, 8}, {2, 6, 2, 12}, {6, 10, 2, 12}, {12, 12, 2, 12}, {0, 4, -1, -1}, {12, 14, -1, -1},
	} {
		if begin, end := loopAround(code, r.first, r.last); begin != r.begin || end != r.end {
			t.Errorf("%d and %d: from %d to %d, not %+v", r.first, r.last, begin, end, r)
		}
	}
}

// TestInOwnLoop: code certainly belongs to the method of a loop if it leads back to itself, past neither call nor poll.
func TestInOwnLoop(t *testing.T) {
	for _, r := range []struct {
		name, code string
		n          int32
		want       bool
	}{
		{"a loop", "ffc0 ffc1 7cfa c3", 0, true},
		{"the end of a loop", "ffc0 ffc1 7cfa c3", 2, true},
		{"behind a loop", "ffc0 ffc1 7cfa 90 c3", 3, false},
		{"no loop in the code", "ffc0 ffc1 90 c3", 0, false},
		{"by a jump", "ffc0 7402 ebfa c3", 0, true},
		{"past a poll", "ffc0 8500 7cfa c3", 0, false},
	} {
		way, own := loopRouter(t, r.code, vmstructs.OpIadd, vmstructs.Invocation{})
		if got := way.inOwnLoop(r.n, own(0), own(4)); got != r.want {
			t.Errorf("%s: %v", r.name, got)
		}
		if way.inOwnLoop(r.n, own(0), own(7)) {
			t.Errorf("%s: a bytecode behind the loop is in it", r.name)
		}
	}
	way, own := loopRouter(t, "ffc0 ffc1 7cfa c3", vmstructs.OpInvokeSpecial,
		vmstructs.Invocation{Method: &vmstructs.Method{CodeSize: 4}})
	if !way.inOwnLoop(0, own(0), own(4)) || way.inOwnLoop(0, own(4), own(4)) {
		t.Error("between two pieces of evidence of one bytecode a method may be inlined, between those of two not")
	}
}

// loopRouter makes a router in code of a method with a loop of bytecodes from 0 to 4, in which op stands. Each test of
// memory in the code is a poll.
func loopRouter(t *testing.T, text string, op uint8, invoked vmstructs.Invocation) (way router,
	own func(bci int32) []vmstructs.Scope) {
	t.Helper()
	owner := &vmstructs.Method{Name: "owner", Addr: 0x1000}
	f := &Finder{cpu: amd64.CPU, bytecode: map[*vmstructs.Method][]vmstructs.Bytecode{
		owner: {bytecode(0, vmstructs.OpIadd), bytecode(1, op), branch(4, opIfeq, 0), bytecode(7, vmstructs.OpReturn)},
	}, callees: map[invokeSite]knownInvoke{{owner, 1}: {Invocation: invoked, whole: true}}}
	code, err := hex.DecodeString(withoutSpaces(text))
	if err != nil {
		t.Fatal(err)
	}
	m := &codeMap{cpu: f.cpu, tree: &vmstructs.SiteTable{}}
	m.begin(code, 0, func(func(uint64) bool) {})
	m.place(0)
	for i := range m.list {
		k := &m.list[i]
		k.filled = true // nothing
		switch {
		case k.flow == arch.FlowReturn:
			k.kind = atReturn
		case code[k.at] == 0x85:
			k.kind, k.begins = atPoll, true
		}
	}
	own = func(bci int32) []vmstructs.Scope { return []vmstructs.Scope{{Method: owner, BCI: bci}} }
	return router{q: questionIn(f, &vmstructs.Blob{Level: levelC2}, m)}, own
}

// TestInlinesNone: which invokes in a loop can be those of methods that are inlined.
func TestInlinesNone(t *testing.T) {
	const special, virtual = vmstructs.OpInvokeSpecial, vmstructs.OpInvoke
	callee := &vmstructs.Method{Name: "callee", CodeSize: 4}
	native := &vmstructs.Method{Name: "native", Native: true}
	for _, r := range []struct {
		name    string
		op      uint8
		called  bool // by a record
		invoked vmstructs.Invocation
		want    bool
	}{
		{name: "no invoke", op: vmstructs.OpIadd, want: true},
		{name: "a method that may be inlined", op: special, invoked: vmstructs.Invocation{Method: callee}},
		{name: "a method that is called", op: special, called: true, want: true},
		{name: "one of several methods", op: virtual, called: true},
		{name: "nobody knows which", op: virtual},
		{name: "an intrinsic method without bytecode", op: special,
			invoked: vmstructs.Invocation{Intrinsic: true, Method: native}, want: true},
		{name: "one with bytecode", op: special, invoked: vmstructs.Invocation{Intrinsic: true, Method: callee}},
		{name: "an invoke that is not resolved", op: special, invoked: vmstructs.Invocation{Never: true}},
	} {
		way, own := loopRouter(t, "ffc0 7cfc", r.op, r.invoked)
		if r.called {
			way.q.code.tree.Set(vmstructs.PlaceOf(own(0)).Site(1), isCalled)
		}
		if got := way.inlinesNone(own(0), way.q.bytecodes(own(0)[0].Method), 0, 4); got != r.want {
			t.Errorf("%s: %v", r.name, got)
		}
	}
}

// TestBeginsRound: behind the poll at the end of a loop's round the methods are certain, if code leads back there,
// through no other method. Elsewhere in the code a method is inlined.
func TestBeginsRound(t *testing.T) {
	const loop, left = "ffc0 8500 90 ebf9 c3", "ffc0 8500 90 c3" // inc, poll, nop, and back or out
	for _, r := range []struct {
		name, code string
		behindPoll bool
		otherTo    bool // the evidence ahead is another method's
		otherLeg   bool // the way leads through another method
		want       profile.Certainty
	}{
		{"behind a poll", loop, true, false, false, profile.Certain},
		{"behind something else", loop, false, false, false, profile.Likely},
		{"behind the poll of a loop that is left", left, true, false, false, profile.Likely},
		{"past another method", loop, true, false, true, profile.Guessed},
		{"to another method", loop, true, true, false, profile.Guessed},
	} {
		way, own := loopRouter(t, r.code, vmstructs.OpInvokeSpecial,
			vmstructs.Invocation{Method: &vmstructs.Method{CodeSize: 4}})
		way.q.code.aloneKnown, way.behindPoll, way.at = true, r.behindPoll, way.q.code.place(4)
		to, other := own(0), append(own(0), own(1)...)
		way.legs = []leg{{scopes: own(0)}}
		if r.otherTo {
			to = other
		}
		if r.otherLeg {
			way.legs = append(way.legs, leg{scopes: other})
		}
		if got := way.sure(own(0), to); got != r.want {
			t.Errorf("%s: %v", r.name, got)
		}
	}
}

// TestBehindPoll: what inferAt finds behind an instruction decides. If that is a poll, a round ends there.
func TestBehindPoll(t *testing.T) {
	for _, r := range []struct {
		behind evidenceKind
		want   profile.Certainty
	}{{atPoll, profile.Certain}, {atCall, profile.Likely}} {
		u := newMadeUp(t)
		// inc eax; nop: a poll; add eax, ecx; nop: a check; jmp to the begin
		u.assemble(t, "ffc0 90 01c8 90 ebf8", vmCall)
		for n, kind := range map[int32]evidenceKind{1: r.behind, 3: atTrap} {
			i := &u.m.list[n]
			i.filled, i.kind, i.record = true, kind, u.records[0]
		}
		u.m.aloneKnown = true // something is inlined elsewhere
		own := u.scopes(0)[0] // whose bytecode has no loop
		u.f.bytecode[own.Method] = []vmstructs.Bytecode{bytecode(own.BCI, vmstructs.OpIadd)}
		s, sure := u.question().between(2, 2, nil)
		if sure != r.want || s[0].Method != u.scopes(0)[0].Method {
			t.Errorf("behind evidence %d: %v, %+v", r.behind, sure, s)
		}
	}
}

// TestGoesAround: the way around a loop may meet a poll of that loop's, and none of another's. The same router must
// answer for one loop after the other.
func TestGoesAround(t *testing.T) {
	const poll = 2                                     // the offset of an instruction
	inside, outside := [2]int32{-1, 4}, [2]int32{0, 4} // the bytecodes of loops; the poll's is -1
	for _, r := range []struct {
		name, code      string
		n               uint32 // the offset of the pc
		inside, outside bool   // goesAround for each loop
	}{
		{"a poll on the way around", "ffc0 8500 7cfa c3", 0, true, false},
		{"the pc is the poll", "ffc0 8500 7cfa c3", 2, true, false},
		{"a poll on the way out", "7cfe 8500 c3", 0, true, true},
		{"a poll on one of two ways", "7404 8500 ebfa ebf8 c3", 0, true, true},
		{"no way around", "ffc0 8500 90 c3", 0, false, false},
	} {
		code, err := hex.DecodeString(withoutSpaces(r.code))
		if err != nil {
			t.Fatal(err)
		}
		newRouter := func() *router {
			m := &codeMap{cpu: amd64.CPU, tree: &vmstructs.SiteTable{}}
			m.begin(code, 0, func(yield func(uint64) bool) { yield(poll) })
			m.place(0)
			n := m.place(poll)
			for i := range m.list {
				m.list[i].filled = true // nothing
			}
			m.list[n].kind = atPoll
			return &router{q: questionIn(&Finder{cpu: amd64.CPU}, &vmstructs.Blob{Level: levelC2}, m)}
		}
		own := []vmstructs.Scope{{}} // of the code's own method, as the poll's is
		for _, loops := range [][][2]int32{{inside, outside}, {outside, inside}} {
			one := newRouter()
			for _, loop := range loops {
				want := r.outside
				if loop == inside {
					want = r.inside
				}
				if got := one.goesAround(one.q.code.place(r.n), own, loop[0], loop[1]); got != want {
					t.Errorf("%s: a loop of %v goes around: %v", r.name, loop, got)
				}
				alone := newRouter()
				inLoop := func(at int32) bool { return alone.isInLoop(at, own, loop[0], loop[1]) }
				if got := alone.leadsBack(alone.q.code.place(r.n), inLoop); got != want {
					t.Errorf("%s: a loop of %v leads back: %v", r.name, loop, got)
				}
			}
		}
	}
}

// TestPastJump: in C2's code a jump belongs to the code at its target.
func TestPastJump(t *testing.T) {
	code, err := hex.DecodeString("eb0190eb0190c3ebfe") // jmp to another jmp, which leads to the ret; a jmp to itself
	if err != nil {
		t.Fatal(err)
	}
	m := &codeMap{cpu: amd64.CPU}
	m.begin(code, 0, func(func(uint64) bool) {})
	ret := m.place(6)
	for _, r := range []struct {
		n     int32
		level uint8
		want  int32
	}{{0, levelC2, ret}, {0, 1, 0}, {1, levelC2, 1}, {ret, levelC2, ret}, {m.place(7), levelC2, m.place(7)},
		{notInCode, levelC2, notInCode}} {
		if got := m.pastJump(r.n, r.level); got != r.want {
			t.Errorf("instruction %d of level %d: %d, not %d", r.n, r.level, got, r.want)
		}
	}
}
