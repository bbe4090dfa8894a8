package leaf

import (
	"goprof/arch"
	"goprof/profile"
	"goprof/vmstructs"
)

// C2 locks or unlocks a monitor in one piece of code. It begins with the exchange of the object's header, and ends with
// the branch to the slow path, which tests the flags of the exchange (opto/locknode.hpp, FastLockNode).

// maxLock bounds the instructions between the exchange and the branch to the slow path.
const maxLock = 12

// monitor returns the methods at the code that locks or unlocks a monitor.
func (p *place) monitor() verdict {
	e := p.slowLock()
	if e.kind != atTrap && e.kind != atCheck {
		return verdict{}
	}
	if s := p.methodsOf(e); s != nil && p.locks(s[0]) {
		return verdict{s, profile.Certain}
	}
	return verdict{}
}

// slowLock returns the first evidence behind the exchange. The exchange is the instruction itself or the one right
// before it.
func (p *place) slowLock() evidence {
	m, n := p.code, p.n
	if m.list[n].swaps {
		n = m.next(n)
	} else if before := m.before(n); before == notInCode || !m.list[before].swaps {
		return evidence{}
	}
	for range maxLock {
		if n < 0 || int(n) >= len(m.list) || m.list[n].swaps {
			break
		}
		if e := p.evidenceAt(n); e.kind != noEvidence {
			return e
		}
		switch m.list[n].flow {
		case arch.FlowNext, arch.FlowBranch:
			n = m.next(n)
		case arch.FlowJump:
			n = m.target(n)
		default:
			return evidence{}
		}
	}
	return evidence{}
}

// locks reports whether a scope's bytecode locks or unlocks a monitor.
func (f *Finder) locks(s vmstructs.Scope) bool {
	code := f.bytecodes(s.Method)
	i := vmstructs.BytecodeAt(code, s.BCI)
	if i < 0 || code[i].Returns() {
		return s.Method.Synchronized
	}
	return code[i].Op == vmstructs.OpMonitorenter || code[i].Op == vmstructs.OpMonitorexit
}
