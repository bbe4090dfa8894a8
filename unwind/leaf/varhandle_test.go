package leaf

import (
	"fmt"
	"strings"
	"testing"

	"goprof/vmstructs"
)

// TestReceiverOf: receiverOf returns the only bytecode that makes the receiver of an invoke, if there is just one.
func TestReceiverOf(t *testing.T) {
	const local, null, dup, store, static = 0x2a, 0x01, 0x59, 0x4c, vmstructs.OpGetstatic
	const ifnull, jump, call, field = vmstructs.OpIfnull, vmstructs.OpGoto, vmstructs.OpInvoke, vmstructs.OpGetfield
	const special, dynamic, swap = vmstructs.OpInvokeSpecial, vmstructs.OpInvokeLast, 0x5f
	at := func(ops ...uint8) (code []vmstructs.Bytecode) {
		for i, op := range ops {
			code = append(code, bytecode(int32(i), op))
		}
		return code
	}
	to := func(code []vmstructs.Bytecode, from, target int32) []vmstructs.Bytecode {
		code[from].Target = target
		return code
	}
	for _, r := range []struct {
		name  string
		code  []vmstructs.Bytecode // the last one is the invoke, with two arguments
		takes int                  // by other invokes
		want  int
	}{
		{"arguments of locals", at(null, static, local, null, call), 0, 1},
		{"of a field", at(static, local, local, field, call), 0, 0},
		{"of a new object", at(static, local, vmstructs.OpNew, dup, local, special, dup, store, call), 2, 0},
		{"the receiver is made of another value", at(static, field, local, local, call), 0, -1},
		{"a receiver twice", at(static, dup, local, local, call), 0, -1},
		{"of invokedynamic", at(static, local, dynamic, call), -1, -1},
		{"of what moves values", at(static, local, local, swap, call), 0, -1},
		{"one of two arguments", to(to(at(static, local, local, ifnull, local, jump, null, call), 3, 6), 5, 7), 0, -1},
		{"one of two receivers", to(to(at(local, ifnull, static, jump, static, local, local, call), 1, 4), 3, 5), 0, -1},
		{"code jumps to the receiver", to(at(local, ifnull, static, local, local, call), 1, 2), 0, 2},
		{"code jumps to an argument", to(at(local, ifnull, static, local, local, call), 1, 3), 0, -1},
		{"nothing before", at(local, local, call), 0, -1},
		{"only the invoke", at(call), 0, -1},
	} {
		got := receiverOf(r.code, len(r.code)-1, func(b *vmstructs.Bytecode) (takes, puts int, ok bool) {
			if b.Op == call {
				return 3, 1, true
			}
			return r.takes, 0, r.takes >= 0
		})
		if got != r.want {
			t.Errorf("%s: %d, not %d", r.name, got, r.want)
		}
	}
	long := at(static)
	for range maxOperands + 1 {
		long = append(long, bytecode(int32(len(long)), 0)) // nop
	}
	long = append(long, at(local, local, call)...)
	if got := receiverOf(long, len(long)-1, func(*vmstructs.Bytecode) (int, int, bool) { return 3, 1, true }); got != -1 {
		t.Errorf("far away: %d", got)
	}
}

// madeUpHandle is a caller of a VarHandle, the guard, and the method that accesses.
type madeUpHandle struct {
	f                     *Finder
	caller, guard, access *vmstructs.Method
}

func newMadeUpHandle() *madeUpHandle {
	h := &madeUpHandle{
		caller: &vmstructs.Method{Name: "caller", Addr: 8, CodeSize: 9},
		guard:  &vmstructs.Method{Name: "guard", Addr: 16, CodeSize: 86, Class: "java.lang.invoke.VarHandleGuards"},
		access: &vmstructs.Method{Name: "access", Addr: 24, CodeSize: 48},
	}
	unsafe := &vmstructs.Method{Name: "compareAndSetReference", Native: true}
	call := bytecode(6, vmstructs.OpInvoke)
	call.Handle = true
	static := vmstructs.OpInvokeStatic
	end := vmstructs.Bytecode{BCI: 9, Op: vmstructs.OpReturn, Target: -1}
	h.f = &Finder{
		bytecode: map[*vmstructs.Method][]vmstructs.Bytecode{
			h.caller: {bytecode(0, vmstructs.OpGetstatic), bytecode(3, 0x2a), call, end},
			h.guard:  {bytecode(0, 0x2a), bytecode(3, vmstructs.OpGetfield), bytecode(6, uint8(static)), end},
			h.access: {bytecode(0, 0x2a), bytecode(1, vmstructs.OpGetfield), bytecode(4, vmstructs.OpInvoke), end},
		},
		callees: map[invokeSite]knownInvoke{
			{h.caller, 6}: {Invocation: vmstructs.Invocation{Method: h.guard, Forced: true}, whole: true,
				access: h.access, accessAsked: maxAccessAsked},
			{h.guard, 6}: {Invocation: vmstructs.Invocation{Method: &vmstructs.Method{Native: true, Name: "linkToStatic"},
				Intrinsic: true, HandsOn: true, Access: true}, whole: true},
			{h.access, 4}: {Invocation: vmstructs.Invocation{Method: unsafe, Intrinsic: true}, whole: true},
		},
	}
	return h
}

func (h *madeUpHandle) router(level uint8) *router {
	b := &vmstructs.Blob{Method: h.caller, Level: level}
	return &router{q: questionIn(h.f, b, &codeMap{tree: &vmstructs.SiteTable{}})}
}

func (h *madeUpHandle) set(change func(*knownInvoke)) {
	key := invokeSite{h.caller, 6}
	known := h.f.callees[key]
	change(&known)
	h.f.callees[key] = known
}

// TestHandleRoute: the way through a call of a VarHandle leads through the guard into the method that accesses, at any
// level. In C2's code the guard has no work.
func TestHandleRoute(t *testing.T) {
	for _, r := range []struct {
		name   string
		level  uint8
		change func(*madeUpHandle)
		want   string
	}{
		{"C2", levelC2, nil, "caller guard:0 access caller"},
		{"C1, which inlines both whatever their sizes", 1, nil, "caller guard access guard caller"},
		{"nobody knows how it accesses", levelC2, func(h *madeUpHandle) {
			h.set(func(k *knownInvoke) { k.access = nil })
		}, "caller guard caller"},
		{"another guard was linked", levelC2, func(h *madeUpHandle) {
			h.set(func(k *knownInvoke) { k.Method = h.access })
		}, "caller access caller"},
		{"nothing was linked", levelC2, func(h *madeUpHandle) {
			h.set(func(k *knownInvoke) { k.Invocation = vmstructs.Invocation{Never: true} })
		}, "caller"},
	} {
		h := newMadeUpHandle()
		if r.change != nil {
			r.change(h)
		}
		way := h.router(r.level)
		way.route([]vmstructs.Scope{{Method: h.caller, BCI: 0}}, []vmstructs.Scope{{Method: h.caller, BCI: 9}})
		var names []string
		for _, l := range way.legs {
			name := l.scopes[0].Method.Name
			if l.work == 0 {
				name += ":0"
			}
			names = append(names, name)
		}
		// A leg without work behind the accessing method does not matter.
		if got := strings.TrimSpace(strings.ReplaceAll(strings.Join(names, " "), "access guard:0", "access")); got != r.want {
			t.Errorf("%s: %s, not %s", r.name, got, r.want)
		}
	}
}

// TestHandleSwap: an exchange is the access of the VarHandle, and that is certain.
func TestHandleSwap(t *testing.T) {
	h := newMadeUpHandle()
	way := h.router(levelC2)
	way.calls = swaps
	s := way.between([]vmstructs.Scope{{Method: h.caller, BCI: 0}}, []vmstructs.Scope{{Method: h.caller, BCI: 9}}, 1, 5)
	var got []string
	for _, at := range s {
		got = append(got, fmt.Sprintf("%s@%d", at.Method.Name, at.BCI))
	}
	if text := strings.Join(got, " "); text != "access@4 guard@6 caller@6" || way.offWay || len(way.found) != 1 {
		t.Errorf("%s, %d found", text, len(way.found))
	}
}

// TestHandedOn: a method that hands on to another method may have that one inlined. So nothing is known about its
// inlined methods.
func TestHandedOn(t *testing.T) {
	for _, handsOn := range []bool{false, true} {
		u := newMadeUp(t)
		own := u.b.OwnScope()
		native := vmstructs.Invocation{Method: &vmstructs.Method{Native: true}, Intrinsic: true, HandsOn: handsOn}
		u.f.bytecode[own[0].Method] = []vmstructs.Bytecode{bytecode(0, vmstructs.OpInvokeStatic),
			bytecode(3, vmstructs.OpReturn)}
		u.f.callees[invokeSite{own[0].Method, 0}] = knownInvoke{Invocation: native, whole: true}
		way := &router{q: questionIn(u.f, u.b, &codeMap{tree: &vmstructs.SiteTable{}})}
		if got := way.inlinesNothing(); got == handsOn {
			t.Errorf("hands on %v: nothing is inlined %v", handsOn, got)
		}
		own[0].BCI = 0
		if got := way.inlinesNone(own, u.f.bytecode[own[0].Method], 0, 9); got == handsOn {
			t.Errorf("hands on %v: nothing is inlined into the loop %v", handsOn, got)
		}
	}
}
