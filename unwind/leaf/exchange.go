package leaf

import (
	"strings"

	"goprof/profile"
	"goprof/vmstructs"
)

// Compilers make some code only for certain bytecodes. If such a bytecode is on the route, it is the one that runs.

// exchange returns the methods at an instruction that exchanges a word of memory.
func (p *place) exchange() verdict {
	if !p.code.list[p.n].swaps {
		return verdict{}
	}
	return p.onRouteFor(swap)
}

// mayBe makes a rule's mayBe, which reports whether compilers may have made code of that name for the record's
// bytecode.
func mayBe(name string) func(*place, vmstructs.Scope) bool {
	return func(p *place, s vmstructs.Scope) bool { return p.MayHaveCalled(s, name) }
}

// onRouteFor returns the methods at a bytecode on the route for which compilers make code of that name.
func (p *place) onRouteFor(name string) verdict {
	s, sure := p.between(p.n, p.n, bytecodesOf(name))
	if sure == profile.Guessed {
		return verdict{}
	}
	return verdict{s, sure}
}

const swap = "swap"

// swaps reports whether compilers make a compare-and-swap for a bytecode: for an atomic operation, or to lock or unlock
// a monitor.
func swaps(in *vmstructs.Method, b *vmstructs.Bytecode, intrinsic *vmstructs.Method) bool {
	return b.Op == vmstructs.OpMonitorexit || b.Op == vmstructs.OpMonitorenter || b.Returns() && in.Synchronized ||
		intrinsic != nil && strings.Contains(letters(intrinsic.Name), "compareand")
}
