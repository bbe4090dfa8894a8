package unwind

import (
	"goprof/arch"
	"goprof/process"
)

// A look without a stop knows only pc and sp. On arm64 a call puts the return address into a register, and a function
// that makes no call does not store it elsewhere. In newer C libraries, threads wait in such a function (glibc from
// 2.41 on: sysdeps/unix/sysv/linux/aarch64/syscall_cancel.S). The return address can be found without the register:
//
//   - That function, the leaf, has no frame. So the frame of its caller begins at sp, with the frame record of arm64's
//     C compilers. The record has the caller's own return address. The call before that address shows which function
//     the caller is.
//   - The caller's code calls the leaf in one or a few places. The leaf's return address is the address after one of
//     these calls.
//   - At the right one of these addresses, the caller's unwind rules find the caller's return address in this very
//     frame record.

// leafCall is a leaf and its caller's own return address.
type leafCall struct{ pc, ret uint64 }

const (
	// maxCallerCode bounds the caller's code that is read. maxLeaf bounds the length of a leaf.
	maxCallerCode = 4096
	maxLeaf       = 256
	maxLinks      = 4096
)

// linkOfLeaf finds the return address of the function that a thread waits in, if only a register has it.
func (w *Walker) linkOfLeaf() (uint64, bool) {
	if !w.cpu.ReturnsInRegister {
		return 0, false
	}
	leaf, ok := w.t.Code(w.cur.pc, true)
	if !ok || leaf.Row == nil || !w.keepsLink(leaf.Row) {
		return 0, false
	}
	ret, ok := w.word(w.cur.sp + 8)
	if !ok {
		return 0, false
	}
	key := leafCall{w.cur.pc, w.strip(ret)}
	link, known := w.links[key]
	if !known {
		link = w.findLink(&leaf, key.ret)
		if len(w.links) >= maxLinks {
			clear(w.links)
		}
		w.links[key] = link
	}
	return link, link != 0
}

// keepsLink reports whether unwind rules describe code that has no frame and keeps its return address in the link
// register.
func (w *Walker) keepsLink(row *process.Row) bool {
	for i := range row.Saved {
		if row.Saved[i].Reg == row.RA && row.Saved[i].Rule.Kind != process.RuleSame {
			return false
		}
	}
	c := &row.CFA
	return int(row.RA) == w.cpu.LR && c.Kind == process.RuleRegister && int(c.Reg) == w.cpu.SP && c.Off == 0
}

// findLink returns the address after a call of the leaf, in the function that returns to ret. It returns 0 if there is
// none.
func (w *Walker) findLink(leaf *process.Code, ret uint64) uint64 {
	if !w.afterCall(ret, nil) {
		return 0
	}
	begin, ok := w.callTarget(ret)
	if !ok {
		return 0
	}
	caller, ok := w.t.Code(begin, true)
	code := w.code[:maxCallerCode]
	for ok && w.t.Read(begin, code) != nil { // the mapping may end soon
		code = code[:len(code)/2]
		ok = len(code) >= maxLeaf
	}
	if !ok {
		return 0
	}
	var in arch.Inst
	for at := uint32(0); int(at) < len(code); at += in.Len {
		if !w.cpu.Read(code, at, &in) {
			in = arch.Inst{Len: w.cpu.MinInst}
			continue
		}
		behind := begin + uint64(at+in.Len)
		if in.Flow != arch.FlowCall || int(at+in.Len) > len(code) || !w.callsLeaf(code[at:at+in.Len], behind, leaf) {
			continue
		}
		if c, ok := w.t.Code(behind, false); ok && sameFunction(&c, &caller) && c.Row != nil && w.recordsOnTop(c.Row) {
			return behind
		}
	}
	return 0
}

// callTarget returns the target of the call before ret. It returns false if the target is not known.
func (w *Walker) callTarget(ret uint64) (uint64, bool) {
	var call [16]byte
	n := min(w.cpu.MaxCall, len(call))
	if w.t.Read(ret-uint64(n), call[:n]) != nil {
		return 0, false
	}
	return w.cpu.CallTarget(call[:n], ret)
}

// callsLeaf reports whether a call leads to the beginning of the function that the thread is in.
func (w *Walker) callsLeaf(call []byte, behind uint64, leaf *process.Code) bool {
	to, ok := w.cpu.CallTarget(call, behind)
	if !ok || to > w.cur.pc || w.cur.pc-to >= maxLeaf {
		return false
	}
	c, ok := w.t.Code(to, true)
	return ok && sameFunction(&c, leaf)
}

// sameFunction compares symbols. Functions without a known symbol count as the same, and the unwind rules decide.
func sameFunction(a, b *process.Code) bool { return a.Image == b.Image && a.Symbol == b.Symbol }

// recordsOnTop reports whether, by the unwind rules, the frame record is at the stack pointer: the caller's frame
// pointer, then the return address.
func (w *Walker) recordsOnTop(row *process.Row) bool {
	if row.CFA.Kind != process.RuleRegister || int(row.CFA.Reg) != w.cpu.SP || int(row.RA) != w.cpu.LR {
		return false
	}
	found := 0
	for i := range row.Saved {
		s := &row.Saved[i]
		at := int64(row.CFA.Off) + int64(s.Rule.Off)
		if s.Rule.Kind == process.RuleOffset && (int(s.Reg) == w.cpu.FP && at == 0 || int(s.Reg) == w.cpu.LR && at == 8) {
			found++
		}
	}
	return found == 2
}
