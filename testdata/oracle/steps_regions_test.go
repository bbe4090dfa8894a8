//go:build linux

package oracle

import (
	"slices"
	"strings"
)

// region is a way to change the list of frames that is neither a call nor a return. The list of
// them is closed and printed with each run; it may only shrink.
type region struct {
	name string
	// is reports whether the change is one of this region. All frames below those that the
	// change counts as gone are known to be the same.
	is func(c *change) bool
}

// What blobs are called (vmstructs.BlobKind).
const (
	inMethod    = "nmethod"
	inWrapper   = "native wrapper"
	inLinker    = "method handle intrinsic"
	inAdapter   = "adapter"
	inVtable    = "vtable stub"
	inStub      = "stub routines"
	inRuntime   = "runtime stub"
	inSafepoint = "safepoint"
	inDeopt     = "deoptimization"
	inTrap      = "uncommon trap"
	inException = "exception"
)

var regions = []region{
	// Native code.
	{"C tail call", func(c *change) bool {
		return c.op == opJump && c.from(inNative) && c.onlyTop() && c.spMoved(0)
	}},
	{"signal delivery", func(c *change) bool {
		if c.before.signal == 0 || !c.to(inNative) || c.gone != 1 || c.come != 3 {
			return false
		}
		a, b := c.after.frames, c.before
		return returnsFromSignal(a, 1) && c.after.calledFrom(&a[1]) &&
			a[2].pc == b.pc && a[2].sp == b.sp && sameOwner(&a[2], &b.frames[0])
	}},
	{"signal handler sends its thread elsewhere", redirects},
	{"signal return", func(c *change) bool {
		return c.op == opSyscall && returnsFromSignal(c.before.frames, 0) && c.counts(2, 1) && c.leavesTo(&c.before.frames[1])
	}},

	// The interpreter.
	{"interpreter calls itself", func(c *change) bool {
		return c.op == opCall && c.within(inInterpreter) && c.onlyTop() && c.sameTop() && c.spMoved(-pushed)
	}},
	{"interpreter returns within itself", func(c *change) bool {
		return c.op == opReturn && c.within(inInterpreter) && c.onlyTop() && c.sameTop() && c.spMoved(pushed)
	}},
	{"interpreter invokes by a pushed address and a jump", func(c *change) bool {
		return c.op == opJump && c.from(inInterpreter) && !c.before.where.isEntry() && c.counts(1, 2) && c.spMoved(0) &&
			c.isPushedCaller()
	}},
	{"a call of an interpreted method", func(c *change) bool {
		return c.op == opCall && (c.to(inAdapter) || c.after.where.isEntry()) && c.counts(1, 2) && c.spMoved(-pushed) &&
			c.isPushedCaller()
	}},
	{"intrinsic entry of the interpreter calls a stub, which forgets its method", func(c *change) bool {
		b, a := c.before, c.after
		return c.op == opCall && b.where.isEntry() && c.to(inStub) && c.counts(1, 2) && c.spMoved(-pushed) &&
			a.calledFrom(&a.frames[1]) ||
			c.op == opReturn && a.where.isEntry() && c.from(inStub) && c.counts(2, 1) && c.spMoved(pushed) &&
				b.calledFrom(&b.frames[1])
	}},
	{"interpreter drops its frame", func(c *change) bool {
		return c.op != opCall && c.op != opReturn && c.from(inInterpreter) && c.counts(2, 1) &&
			c.leavesTo(&c.before.frames[1])
	}},
	{"interpreter returns after it has dropped its frame", func(c *change) bool { // where that is no jump: aarch64
		return c.op == opReturn && c.from(inInterpreter) && !c.before.onTop() && c.onlyTop() && c.spMoved(0) &&
			c.leavesTo(c.top())
	}},
	{"interpreter entry moves its return address", func(c *change) bool {
		return (c.op == opOther || c.op == opJump) && c.before.where.isEntry() && c.after.where.isEntry() &&
			c.counts(2, 2) && c.sameTop() && c.movedCaller()
	}},

	// Between the conventions of calls.
	{"adapter moves its return address", func(c *change) bool {
		return c.op == opOther && c.within(inAdapter) && c.counts(2, 2) && c.sameTop() && c.movedCaller()
	}},
	{"adapter, vtable stub, inline cache or linker jumps on", func(c *change) bool {
		return c.op == opJump && c.spMoved(0) &&
			(c.from(inAdapter, inVtable, inLinker) || c.before.where.name == "InlineCacheBuffer") &&
			c.to(inMethod, inWrapper, inLinker, inAdapter, inVtable, inInterpreter, inRuntime) &&
			(c.onlyTop() || c.counts(2, 2) && c.movedCaller())
	}},
	{"compiled code jumps to a stub before its frame or after", func(c *change) bool {
		return c.op == opJump && c.onlyTop() && c.spMoved(0) && c.from(inMethod, inWrapper, inLinker) &&
			c.to(inSafepoint, inException, inAdapter, inVtable, inRuntime, inStub)
	}},
	{"stub jumps on to another", func(c *change) bool {
		return c.op == opJump && c.onlyTop() && c.spMoved(0) && c.from(inStub, inRuntime) && c.to(inStub, inRuntime)
	}},
	{"runtime stub jumps on to the method that it has resolved", func(c *change) bool {
		return c.op == opJump && c.onlyTop() && c.spMoved(0) && c.from(inRuntime) &&
			c.to(inMethod, inWrapper, inAdapter, inLinker)
	}},
	{"compiled method's own stub puts a return address on the stack", func(c *change) bool {
		top := c.newTop()
		to, ok := c.after.returnAddress()
		return c.within(inMethod) && c.before.where.at == c.after.where.at && c.onlyTop() && c.sameTop() &&
			ok && top.pc == to && top.sp == c.after.sp+pushed
	}},
	{"compiled method's own stub jumps on", func(c *change) bool {
		return c.op == opJump && c.from(inMethod) && c.to(inAdapter, inMethod, inInterpreter, inDeopt) &&
			c.counts(1, 2) && c.spMoved(0) &&
			c.after.calledFrom(&c.after.frames[1]) && c.after.frames[1].pc == c.top().pc &&
			sameOwner(c.top(), &c.after.frames[1])
	}},
	{"compiled method's exception handler goes on in a stub above its frame", func(c *change) bool {
		return c.op == opJump && c.from(inMethod) && c.to(inException) && c.counts(1, 2) && c.spMoved(0) &&
			sameButPC(c.top(), &c.after.frames[1])
	}},
	// it was in the link register
	{"stub calls, and keeps its own return address in another register", func(c *change) bool {
		b, a := c.before, c.after
		return pushed == 0 && c.op == opCall && c.from(inStub, inRuntime) && c.counts(2, 3) && c.spMoved(0) &&
			a.calledFrom(&a.frames[1]) && sameOwner(&b.frames[0], &a.frames[1]) && samePlace(&b.frames[1], &a.frames[2]) &&
			a.frames[2].slot == 0
	}},
	{"safepoint stub writes its return address", func(c *change) bool {
		return c.op == opOther && c.within(inSafepoint) && c.counts(2, 2) && c.sameTop() && c.sameCaller()
	}},

	// Deoptimisation.
	{"deoptimisation replaces a compiled frame by interpreted ones: the same methods", func(c *change) bool {
		return (c.from(inDeopt, inTrap) || c.to(inDeopt, inTrap)) && c.common > 0 &&
			slices.Equal(javaMethods(c.before), javaMethods(c.after))
	}},
	{"HotSpot patches the return address of a frame that it deoptimises", patches},

	// Exceptions.
	{"exception stub changes its return address", func(c *change) bool {
		return c.op == opOther && c.inExceptionStub() && c.counts(2, 2) && c.sameTop() && c.sameCaller()
	}},
	{"exception stub is told its return address by the VM", func(c *change) bool {
		return c.op == opReturn && c.from(inNative) && c.to(inException, inRuntime) && c.counts(3, 2) && c.spMoved(pushed) &&
			c.leavesTo(&c.before.frames[1]) && sameButPC(&c.before.frames[2], &c.after.frames[1])
	}},
	{"interpreter has dropped its frame and asks the VM for a handler", func(c *change) bool {
		b, a := c.before, c.after
		return c.op == opCall && b.where.inExceptionCodelet() && c.to(inNative) &&
			c.counts(1, 2) && c.spMoved(-pushed) && sameButTop(&b.frames[0], &a.frames[1]) ||
			c.op == opReturn && a.where.inExceptionCodelet() && c.from(inNative) &&
				c.counts(2, 1) && c.spMoved(pushed) && sameButTop(&b.frames[1], &a.frames[0])
	}},
	{"exception goes on in a handler", func(c *change) bool {
		if c.op != opJump || !c.inExceptionStub() || !c.counts(2, 1) {
			return false
		}
		// A CPU with a link register has the handler in another one, until it is there.
		caller := &c.before.frames[1]
		return c.leavesTo(caller) || pushed == 0 && c.after.onTop() && sameButPC(caller, c.newTop())
	}},
}

func (c *change) from(whats ...string) bool { return slices.Contains(whats, c.before.where.what) }
func (c *change) to(whats ...string) bool   { return slices.Contains(whats, c.after.where.what) }
func (c *change) within(what string) bool   { return c.from(what) && c.to(what) }

// inExceptionStub: JDK 17 and 25 count some of these stubs among others.
func (c *change) inExceptionStub() bool {
	return c.from(inException) || c.from(inRuntime, inStub) && strings.Contains(c.before.where.name, "exception")
}

func (c *change) counts(gone, come int) bool { return c.gone == gone && c.come == come }

// onlyTop: all callers are the same.
func (c *change) onlyTop() bool { return c.counts(1, 1) }

// sameTop: the topmost frame is of the same code and method.
func (c *change) sameTop() bool { return sameOwner(c.top(), c.newTop()) }

func (c *change) spMoved(by int64) bool { return int64(c.after.sp-c.before.sp) == by }

// leavesTo: caller is the topmost frame now, at the address at which it stood as a caller.
func (c *change) leavesTo(caller *physical) bool {
	top := c.newTop()
	return top.pc == caller.pc && top.sp == caller.sp && sameOwner(caller, top)
}

// isPushedCaller: the frame that was topmost is the caller now, at the address on top of the stack.
func (c *change) isPushedCaller() bool {
	caller := &c.after.frames[1]
	return caller.framed && c.after.calledFrom(caller) && sameOwner(c.top(), caller)
}

// movedCaller: the topmost frame's caller is at the same pc, of which only the place has changed. The
// frames of the interpreter and of the call stub go by their frame pointer, and their sp is
// wherever their arguments end.
func (c *change) movedCaller() bool {
	b, a := &c.before.frames[1], &c.after.frames[1]
	return b.pc == a.pc && sameMethods(b, a) && (b.sp == a.sp || b.framed && a.framed)
}

// sameCaller: the topmost frame's caller is the same frame, but elsewhere in its method.
func (c *change) sameCaller() bool {
	b, a := &c.before.frames[1], &c.after.frames[1]
	return sameButPC(b, a)
}

func sameButPC(b, a *physical) bool { return b.sp == a.sp && sameOwner(b, a) }

// sameButTop compares a frame that is shown as topmost with the same as a caller.
func sameButTop(b, a *physical) bool { return b.pc == a.pc && sameButPC(b, a) }

// inExceptionCodelet: where the interpreter unwinds
// (interpreter/templateInterpreterGenerator.cpp, generate_all).
func (p place) inExceptionCodelet() bool {
	return p.what == inInterpreter && p.name == "exception handling"
}

// signalFrame is less than the kernel puts on the stack for a signal (struct rt_sigframe).
const signalFrame = 0x300

// returnsFromSignal: frame i goes back to what a signal interrupted. Where the C library is stripped, that is its large
// frame without a name; so it is in arm64's vdso, where a handler returns to the beginning of a function that nobody
// has called.
func returnsFromSignal(frames []physical, i int) bool {
	owner := frames[i].owner()
	if owner.Func.Name == signalReturn {
		return true
	}
	module := owner.Func.Module
	return nameless(owner) && (strings.HasPrefix(module, "libc.so") || module == "[vdso]") && i+1 < len(frames) &&
		frames[i+1].sp-frames[i].sp >= signalFrame
}

// redirects: a signal handler changes the pc at which its thread goes on. HotSpot's goes on in a
// stub, which may have the interrupted frame as its caller. The frames above, of the handler, stay.
func redirects(c *change) bool {
	b, a := c.before.frames, c.after.frames
	i := 0
	for i < len(b) && !returnsFromSignal(b, i) {
		i++
	}
	if i == len(b) {
		return false
	}
	if c.op != opOther || !c.within(inNative) || i < 1 || c.gone < i+1 || c.gone > i+2 || c.come < i+2 || c.come > i+3 {
		return false
	}
	return c.sameAbove(i+1) && b[i+1].sp == a[i+1].sp && a[i+1].slot == 0
}

// maxMoved: a callee's frame that the VM fills in is told where its caller's operands end.
const maxMoved = 8 << 10

// patches: the VM makes a frame return into its deoptimisation handler, or an interpreted frame
// that it has just filled into where it goes on.
func patches(c *change) bool {
	n := c.gone - 1
	if c.gone != c.come || n < 1 || !c.sameAbove(n) {
		return false
	}
	b, a := &c.before.frames[n], &c.after.frames[n]
	if b.pc == a.pc && b.slot == a.slot && a.sp > b.sp && a.sp-b.sp < maxMoved && sameMethods(b, a) {
		return c.before.where.name == "AbstractInterpreter::layout_activation" || nameless(c.top().owner())
	}
	byName := c.before.where.name == "frame::patch_pc" || nameless(c.top().owner()) // as far as libjvm.so has names
	return (a.patched || byName) && a.slot == b.slot && sameButPC(b, a)
}

// sameAbove: so many of the topmost frames are the same.
func (c *change) sameAbove(n int) bool {
	for k := 1; k < n; k++ {
		if !samePhysical(&c.before.frames[k], &c.after.frames[k]) {
			return false
		}
	}
	return c.sameTop()
}
