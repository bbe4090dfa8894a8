//go:build linux

package oracle

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"goprof/profile"
)

// change is what one instruction did to the list of frames.
type change struct {
	before, after *moment
	op            op
	// Counted from the root, common frames are the same before and after: their pcs, sps,
	// places of return addresses, methods and lines. The topmost ones are never among them.
	// So many others are gone, and so many have come.
	common, gone, come int
}

func changeOf(before, after *moment) change {
	c := change{before: before, after: after, op: opOf(before.code[:])}
	b, a := before.frames, after.frames
	for c.common < min(len(b), len(a))-1 && samePhysical(&b[len(b)-1-c.common], &a[len(a)-1-c.common]) {
		c.common++
	}
	if mayMoveSlot(c.op) && c.common == len(b)-2 && len(a) == len(b) && samePlace(&b[1], &a[1]) {
		c.common++
	}
	c.gone, c.come = len(b)-c.common, len(a)-c.common
	return c
}

// samePhysical compares callers.
func samePhysical(b, a *physical) bool { return b.slot == a.slot && samePlace(b, a) }

// samePlace compares them but for where their return addresses stand.
func samePlace(b, a *physical) bool {
	return b.pc == a.pc && b.sp == a.sp && sameMethods(b, a)
}

func sameMethods(b, a *physical) bool {
	if len(b.methods) != len(a.methods) {
		return false
	}
	for i := range b.methods {
		if !sameMethod(&b.methods[i], &a.methods[i]) {
			return false
		}
	}
	return true
}

func sameMethod(b, a *profile.Frame) bool {
	return b.Kind == a.Kind && b.Line == a.Line && b.BCI == a.BCI && b.Level == a.Level &&
		(b.Func == a.Func || b.Func.Name == a.Func.Name)
}

// sameOwner: what is inlined into the topmost frame may change at will, its owner may not.
func sameOwner(b, a *physical) bool {
	x, y := b.owner(), a.owner()
	if x.Kind == profile.Native && nameless(x) && nameless(y) {
		return x.Func.Module == y.Func.Module
	}
	if y.Kind == profile.Stub && (callStubOf8(x, y) || mathEntryOf8(x, y)) ||
		x.Kind == profile.Stub && mathEntryOf8(y, x) {
		return true
	}
	return x.Kind == y.Kind && (x.Func == y.Func || x.Func.Name == y.Func.Name)
}

// mathEntryOf8: while JDK 8's entry for a method of Math calls C, only the entry tells which method that is.
func mathEntryOf8(b, a *profile.Frame) bool {
	return b.Kind == profile.Interpreted &&
		strings.HasPrefix(a.Func.Name, "Interpreter (method entry point (kind = java_lang_math")
}

// callStubOf8: JDK 8 tells only to where the call stub's callee returns, not where the stub begins.
func callStubOf8(b, a *profile.Frame) bool {
	const stub, unnamed = "call_stub", "StubRoutines (1)"
	return b.Func.Name == stub && a.Func.Name == unnamed || b.Func.Name == unnamed && a.Func.Name == stub
}

// nameless: native code without a symbol goes by module and offset, lib.so+0x1f.
func nameless(f *profile.Frame) bool { return strings.HasPrefix(f.Func.Name, f.Func.Module+"+0x") }

// The explanations that need no region.
const (
	byNothing = "no change" // the list is the same
	byCall    = "call"
	byReturn  = "return"
)

// judge explains the step from before to after: by the instruction, or by the name of a
// region. The error tells why there is no explanation.
func judge(before, after *moment) (string, error) {
	c := changeOf(before, after)
	if before.pc == after.pc && before.sp == after.sp && c.gone == 1 && c.come == 1 {
		return byNothing, nil // a repeated instruction, or one that met a signal
	}
	if before.signal == 0 {
		if by, ok := c.byInstruction(); ok {
			return by, nil
		}
	}
	for i := range regions {
		if regions[i].is(&c) {
			return regions[i].name, nil
		}
	}
	return "", fmt.Errorf("a %v from %s to %s: %d of the topmost frames are gone and %d have come",
		c.op, before.where.what, after.where.what, c.gone, c.come)
}

// byRebuilding explains what has become of a stack between two walks that reached the root, if
// those between them were cut short.
const byRebuilding = "stack rebuilt while walks were cut short: the same methods"

// judgeAcross compares two such walks. A compiled frame may have become interpreted ones, but the
// methods are the same, and so are the frames further down.
func judgeAcross(before, after *moment) (string, error) {
	c := changeOf(before, after)
	b, a := javaMethods(before), javaMethods(after)
	if !slices.Equal(b, a) {
		return "", fmt.Errorf("walks were cut short, and before and after them are other methods: %q and %q", b, a)
	}
	if c.common == 0 {
		return "", errors.New("walks were cut short, and not even the root is the same after them")
	}
	return byRebuilding, nil
}

// judgeCut holds what a walk has that was cut short against a whole one before it: an instruction
// that leaves the topmost frame what it is leaves its callers, too.
func judgeCut(before, after *moment) error {
	b, a := before.frames, after.frames
	switch op := opOf(before.code[:]); {
	case before.signal != 0, op == opCall, op == opReturn, len(a) == 0, !sameOwner(&b[0], &a[0]):
		return nil
	}
	for k := 1; k < len(a); k++ {
		if k >= len(b) || b[k].pc != a[k].pc || b[k].sp != a[k].sp && !(b[k].framed && a[k].framed) {
			return fmt.Errorf("a walk is cut short (%v), and its frame %d is another", after.why, k)
		}
	}
	return nil
}

func javaMethods(m *moment) (names []string) {
	for _, p := range m.frames {
		for i := range p.methods {
			if p.methods[i].Kind.Java() {
				names = append(names, p.methods[i].Func.Name)
			}
		}
	}
	return names
}

// byInstruction explains what every machine does.
func (c *change) byInstruction() (string, bool) {
	switch {
	case c.op == opCall && c.isCall():
		return byCall, true
	case c.op == opReturn && c.isReturn():
		return byReturn, true
	case c.op != opCall && c.op != opReturn && c.gone == 1 && c.come == 1 && sameOwner(c.top(), c.newTop()) &&
		c.staysOnTop():
		return byNothing, true
	}
	return "", false
}

// staysOnTop: the topmost frame is where the thread is. Code between two frames (an interpreter's
// method that has dropped its own, a compiled method's stub of a call) has none to show; it
// takes a region to get there.
func (c *change) staysOnTop() bool {
	if c.after.onTop() {
		return true
	}
	b, a := c.top(), c.newTop()
	return !c.before.onTop() && b.pc == a.pc && (b.sp == a.sp || b.framed && a.framed)
}

func (c *change) top() *physical    { return &c.before.frames[0] }
func (c *change) newTop() *physical { return &c.after.frames[0] }

// isCall: the frame that was topmost is now the caller, at the return address that the
// instruction has just made.
func (c *change) isCall() bool {
	b, a := c.before, c.after
	if c.gone != 1 || c.come != 2 || a.sp != b.sp-pushed {
		return false
	}
	caller := &a.frames[1]
	return a.calledFrom(caller) && caller.pc > b.pc && caller.pc-b.pc <= maxInstruction &&
		caller.sp == b.sp && sameOwner(&b.frames[0], caller)
}

// isReturn: the caller is now topmost, at the return address that was at hand.
func (c *change) isReturn() bool {
	b, a := c.before, c.after
	if c.gone != 2 || c.come != 1 {
		return false
	}
	caller := &b.frames[1]
	return b.calledFrom(caller) && a.pc == caller.pc && caller.sp == a.sp && sameOwner(caller, &a.frames[0])
}
