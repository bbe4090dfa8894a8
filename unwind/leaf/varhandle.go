package leaf

import (
	"errors"

	"goprof/vmstructs"
)

// A call of a VarHandle has three methods: the caller, the guard to which the interpreter has linked the call, and the
// method by which the VarHandle accesses memory. All VarHandles with the same types of arguments share the guard. So
// the method that the guard calls depends on the caller, and goprof keeps that method with the caller's call. The
// method is known if the caller takes the VarHandle from a static final field.

// maxAccessAsked bounds the attempts to find the method by which a VarHandle accesses memory if a collector moves
// objects meanwhile.
const maxAccessAsked = 16

// accessed returns the method by which a VarHandle accesses memory. The guard is the innermost method of chain. link is
// the guard's call that ends in that method. If the method is not known, accessed returns link.
func (f *Finder) accessed(chain []vmstructs.Scope, link vmstructs.Invocation) vmstructs.Invocation {
	if len(chain) < 2 {
		return link
	}
	m := chain[1].Method
	code := f.bytecodes(m)
	at := vmstructs.BytecodeAt(code, chain[1].BCI)
	if at < 0 || !code[at].Handle {
		return link
	}
	call := &code[at]
	if guard := f.invoked(m, call).Method; guard == nil || guard.Addr != chain[0].Method.Addr {
		return link
	}
	key := invokeSite{m, call.BCI}
	known := f.callees[key]
	if known.accessAsked < maxAccessAsked {
		load := receiverOf(code, at, func(b *vmstructs.Bytecode) (takes, puts int, ok bool) {
			return f.vm.InvokeEffect(m, b)
		})
		var err error
		if load >= 0 {
			known.access, err = f.vm.Accessed(m, call, &code[load])
		}
		if known.accessAsked++; !errors.Is(err, vmstructs.ErrMoved) {
			known.accessAsked = maxAccessAsked
		}
		f.keepInvoke(key, known)
	}
	if known.access == nil {
		return link
	}
	return vmstructs.Invocation{Method: known.access, Forced: true}
}

// knownHandle is what a compiler knows of a constant VarHandle.
type knownHandle uint8

const (
	nothing  knownHandle = iota
	inGuard              // all that the guard reads: the VarHandle's kind, and the method to call
	inAccess             // what the accessing method reads from the VarHandle
)

// knownIn returns what the compiler knows of the VarHandle in the innermost method of chain.
func (r *router) knownIn(chain []vmstructs.Scope) knownHandle {
	switch {
	case r.q.blob.Level != levelC2 || len(chain) < 2:
	case chain[0].Method.GuardsHandle():
		if r.q.accessed(chain, vmstructs.Invocation{}).Method != nil {
			return inGuard
		}
	case len(chain) > 2 && chain[1].Method.GuardsHandle():
		if r.q.accessed(chain[1:], vmstructs.Invocation{}).Method == chain[0].Method {
			return inAccess
		}
	}
	return nothing
}

// vanishes reports whether a compiler makes no code for a bytecode because its result is a constant: the fields of a
// constant VarHandle are constants, too (ci/ciField.cpp, trust_final_non_static_fields).
func (r *router) vanishes(known knownHandle, m *vmstructs.Method, b *vmstructs.Bytecode) bool {
	if known == inGuard {
		return !isInvoke(b.Op) || !r.q.invoked(m, b).Access
	}
	return b.Op == vmstructs.OpGetfield || b.Op == vmstructs.OpGetstatic
}

// maxOperands bounds the bytecodes that make the arguments of a call.
const maxOperands = 64

// receiverOf returns the index of the only bytecode that makes the receiver of an invoke, -1 if not known. The receiver
// is below all arguments on the operand stack. If a jump leads to a bytecode between the two, another bytecode may have
// made the receiver. effect is the effect of an invoke on the operand stack.
func receiverOf(code []vmstructs.Bytecode, invoke int, effect invokeEffect) int {
	need, _, ok := effect(&code[invoke])
	at := invoke
	for n := 0; ok && need > 0; n++ {
		if at--; at < 0 || n == maxOperands {
			return -1
		}
		takes, puts, known := effectOf(&code[at], effect)
		if ok = known && puts <= need; need == puts && takes > 0 {
			return -1 // the receiver was made from other values
		}
		need += takes - puts
	}
	if !ok || at == invoke {
		return -1
	}
	for i := range code {
		if to := code[i].Target; to > code[at].BCI && to <= code[invoke].BCI {
			return -1
		}
	}
	return at
}

// invokeEffect is described at vmstructs.VM.InvokeEffect.
type invokeEffect func(b *vmstructs.Bytecode) (takes, puts int, ok bool)

// effectOf is stackOf extended to invokes and dup. ok is false for branches.
func effectOf(b *vmstructs.Bytecode, effect invokeEffect) (takes, puts int, ok bool) {
	switch {
	case b.Op == opDup:
		return 1, 2, true
	case isInvoke(b.Op):
		return effect(b)
	case b.Branches():
		return 0, 0, false
	}
	return stackOf(b.Op)
}

// opDup copies the value on top of the operand stack. The value is never one half of a long.
const opDup = 0x59
