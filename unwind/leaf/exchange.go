package leaf

import (
	"strings"

	"goprof/profile"
	"goprof/vmstructs"
)

// Compilers make some code only for certain bytecodes. A bytecode of that kind on the route has it.

// exchange tells the methods at an instruction that exchanges a word of memory.
func (p *place) exchange() verdict {
	if !p.code.list[p.n].swaps {
		return verdict{}
	}
	return p.onRouteFor(swap)
}

// mayBe reports for a place whether compilers may have made code of that name for it.
func mayBe(name string) func(*place, vmstructs.Scope) bool {
	return func(p *place, s vmstructs.Scope) bool { return p.MayHaveCalled(s, name) }
}

// onRouteFor tells the methods at a bytecode on the route for which compilers make code of that name.
func (p *place) onRouteFor(name string) verdict {
	s, sure := p.between(p.n, p.n, bytecodesOf(name))
	if sure == profile.Guessed {
		return verdict{}
	}
	return verdict{s, sure}
}

// swap is the name of the instruction that exchanges a word of memory if it is what it was.
const swap = "swap"

// swaps reports whether compilers do a bytecode with that instruction: some atomic operations, and what takes a monitor
// or gives it back.
func swaps(in *vmstructs.Method, b *vmstructs.Bytecode, intrinsic *vmstructs.Method) bool {
	return b.Op == vmstructs.OpMonitorexit || b.Op == vmstructs.OpMonitorenter || b.Returns() && in.Synchronized ||
		intrinsic != nil && strings.Contains(letters(intrinsic.Name), "compareand")
}
