package process

import (
	"goprof/arch"
	"goprof/arch/cpus"
)

const (
	maxBody   = 4 << 10 // bytes of code that are searched for a function's end
	maxBodies = 1024    // for each table: musl exports about 40 functions without a size
)

// readBodies finds out where exported functions without a size end. The next exported symbol is not the end: other
// functions may lie between. In musl the code of all system calls (src/thread/x86_64/syscall_cp.s) follows memset, and
// all waits would get the name memset.
func (t *symtab) readBodies(f *elfFile) {
	cpu := cpus.ByMachine(f.machine)
	t.bodies = make(map[uint32]uint64)
	for n, i := range t.order.symbols {
		s := t.at(i)
		if s.size > 0 || len(t.bodies) == maxBodies {
			continue
		}
		next := uint64(maxBody)
		if n+1 < len(t.order.symbols) {
			next = t.at(t.order.symbols[n+1]).value - s.value
		}
		t.bodies[i] = s.value
		off, left, ok := f.offset(s.value)
		if !ok || cpu == nil {
			continue
		}
		if code, err := f.bytes(off, min(left, next, maxBody)); err == nil {
			t.bodies[i] += bodyOf(cpu, code)
		}
	}
}

// bodyOf returns the length of the function at the beginning of code. The function ends after the first return or jump
// that no earlier branch skips.
func bodyOf(cpu *arch.CPU, code []byte) uint64 {
	var in arch.Inst
	var pc, far uint32 // far is the highest target of a branch
	for int(pc) < len(code) && cpu.Read(code, pc, &in) {
		if in.Flow == arch.FlowBranch && in.HasTarget {
			far = max(far, in.Target)
		}
		pc += in.Len
		if (in.Flow == arch.FlowReturn || in.Flow == arch.FlowJump || in.Flow == arch.FlowEnds) && far < pc {
			break
		}
	}
	return uint64(pc)
}
