package unwind

import (
	"fmt"

	"goprof/arch"
	"goprof/process"
	"goprof/profile"
	"goprof/vmstructs"
)

// nativeSite has the facts about one native pc.
type nativeSite struct {
	fn  *profile.Func
	row *process.Row
	gap *profile.Func // if row is nil, the Func in place of callers that cannot be found
	// sigreturn: a signal's handler returns to this pc.
	sigreturn bool
}

// stepNative walks a frame of compiled C or C++ by its DWARF unwind rules.
func (w *Walker) stepNative() (why profile.Reason, root bool) {
	site := w.native(w.cur.pc, w.cur.exact)
	if site == nil {
		return w.notCode()
	}
	if site.row == nil && w.overTrampoline() {
		return profile.Whole, false
	}
	if site.fn == site.gap { // code of no file: the function is not known
		w.emit(profile.Frame{Func: site.gap, Kind: profile.Gap, BCI: -1})
		return w.toAnchor(profile.NoUnwindInfo), false
	}
	w.emit(profile.Frame{Func: site.fn, Kind: profile.Native, BCI: -1})
	if site.sigreturn {
		return w.interrupted(), false
	}
	if site.row == nil {
		if c, ok := w.assemblyCaller(site); ok {
			return w.goTo(c), false
		}
		if w.beganHere() {
			return profile.Whole, true
		}
		w.emit(profile.Frame{Func: site.gap, Kind: profile.Gap, BCI: -1})
		return w.toAnchor(profile.NoUnwindInfo), false
	}
	if w.applyCode(site.row) {
		return profile.Whole, false
	}
	return w.applyRow(site.row)
}

// notCode handles a pc that is in no code at all.
func (w *Walker) notCode() (why profile.Reason, root bool) {
	if w.cur.pc == 0 && !w.cur.exact && w.cur.byRules {
		// A return address of 0 marks the outermost frame (System V ABI, 3.4.1). Generated code is never a thread's root, so
		// there a 0 was not a return address.
		return profile.Whole, true
	}
	return profile.NotCode, false
}

// jitCode and jitGap stand for all code that is in no file and is not HotSpot's. One Func for each pc would need
// unbounded memory, because such code comes and goes.
var (
	jitCode = &profile.Func{Name: process.JITCode, Module: process.JITCode}
	jitGap  = &profile.Func{Name: "[no unwind info: " + process.JITCode + "]", Module: process.JITCode}
	jitSite = &nativeSite{fn: jitGap, gap: jitGap}
)

// native returns the nativeSite of a pc, through a cache. Results for code that is in no file are not cached, because
// other code may replace it (process.JITCode).
func (w *Walker) native(pc uint64, exact bool) *nativeSite {
	key := pc << 1
	if exact {
		key |= 1
	}
	if site, ok := w.natives[key]; ok {
		return site
	}
	code, ok := w.t.Code(pc, exact)
	if !ok {
		return nil
	}
	site := w.look(pc, exact, &code)
	if site == *jitSite {
		return jitSite
	}
	kept := &nativeSite{}
	*kept = site
	if code.Image != process.JITCode {
		w.natives[key] = kept
	}
	return kept
}

func (w *Walker) look(pc uint64, exact bool, code *process.Code) (site nativeSite) {
	site = nativeSite{fn: nativeFunc(*code), row: code.Row}
	if site.row == nil && exact {
		w.askLinker(pc, code, &site)
	}
	if site.row == nil {
		if site.gap = gapOf(*code); site.gap == jitGap {
			site.fn = site.gap
		}
	}
	if site.sigreturn = w.isSigreturn(pc, exact, site.row); site.sigreturn && !exact {
		// This code is never called: a handler returns to its first instruction.
		if begin, ok := w.t.Code(pc, true); ok {
			site.fn = nativeFunc(begin)
		}
	}
	return site
}

// gapOf stands for the callers of code that has no unwind rules.
func gapOf(code process.Code) *profile.Func {
	if code.Image == process.JITCode {
		return jitGap
	}
	return &profile.Func{Name: "[no unwind info: " + code.Image + "]", Module: code.Image, Build: code.BuildID}
}

func nativeFunc(code process.Code) *profile.Func {
	if code.Image == process.JITCode {
		return jitCode
	}
	name := Demangled(code.Symbol)
	if name == "" {
		name = fmt.Sprintf("%s+%#x", code.Image, code.Offset)
	}
	return &profile.Func{Name: name, Module: code.Image, Build: code.BuildID}
}

// toAnchor continues the walk at the frame anchor, where HotSpot noted its last Java frame. It skips native code that
// cannot be walked.
func (w *Walker) toAnchor(why profile.Reason) profile.Reason {
	a := w.anchor
	if a.SP == 0 || a.SP <= w.cur.sp || !w.inCopy(a.SP) {
		return why
	}
	w.anchor = vmstructs.Anchor{}
	pc := a.PC
	if pc == 0 { // the anchor has no pc, but the call pushed it (runtime/javaFrameAnchor.hpp)
		ret, ok := w.slot(a.SP, -1)
		if !ok || !w.notesNoPC(w.strip(ret)) {
			return why
		}
		pc = ret
	}
	return w.toCaller(pc, a.SP, a.FP, a.FP != 0)
}

// notesNoPC reports whether pc is in code that calls the VM without noting its pc in the anchor: the interpreter and
// stubs. In other code, the word below the noted stack pointer is from an earlier call, because a signal interrupted
// the thread after it had noted its stack pointer, and before it called the VM.
func (w *Walker) notesNoPC(pc uint64) bool {
	if w.vm.InInterpreter(pc) {
		return true
	}
	b, err := w.vm.Blob(pc)
	return err == nil && !b.Kind.IsNmethod()
}

// applyRow moves the cursor from a native frame to its caller. row has the unwind rules, from which applyRow computes
// the caller's registers (DWARF 5, section 6.4.4). It returns profile.Whole if that succeeds, and otherwise the reason
// why the walk ends. root is true if the rules show that the frame has no caller.
func (w *Walker) applyRow(row *process.Row) (why profile.Reason, root bool) {
	cfa, ok := w.cfa(row)
	if !ok {
		return profile.NoUnwindInfo, false
	}
	c := &w.cur
	old := *c
	c.known &= w.cpu.CalleeSaved
	if row.Signal {
		c.known = 0
	}
	set := func(reg int, v uint64) {
		c.regs[reg] = v
		c.known |= 1 << reg
	}
	set(w.cpu.SP, cfa)
	pcKnown := false
	if ra := int(row.RA); ra != w.cpu.PC && ra < arch.MaxRegs && old.exact && old.known&(1<<ra) != 0 {
		set(w.cpu.PC, old.regs[ra]) // a leaf's return address is still in its register
		pcKnown = true
	}
	for i := range row.Saved {
		s := &row.Saved[i]
		reg := int(s.Reg)
		isRA := s.Reg == row.RA
		if reg >= arch.MaxRegs {
			continue
		}
		v, state := w.ruleValue(&old, cfa, &s.Rule)
		switch {
		case isRA && s.Rule.Kind == process.RuleUndefined:
			return profile.Whole, true
		case state == ruleFailed || state == ruleBeyond:
			if isRA || reg == w.cpu.SP {
				return w.failed(state), false
			}
			c.known &^= 1 << reg
		case state == ruleSame:
			continue
		case isRA:
			pcKnown = true
			set(w.cpu.PC, v)
			if reg != w.cpu.PC {
				set(reg, v)
			}
		default:
			set(reg, v)
		}
	}
	if !pcKnown {
		return profile.NoUnwindInfo, false
	}
	c.arrive(w.strip(c.regs[w.cpu.PC]), c.regs[w.cpu.SP])
	c.exact, c.byRules = row.Signal, true
	c.regs[w.cpu.PC] = c.pc
	return profile.Whole, false
}

func (w *Walker) cfa(row *process.Row) (uint64, bool) {
	switch row.CFA.Kind {
	case process.RuleRegister:
		if int(row.CFA.Reg) >= arch.MaxRegs || !w.isKnown(int(row.CFA.Reg)) {
			return 0, false
		}
		return w.cur.regs[row.CFA.Reg] + uint64(int64(row.CFA.Off)), true
	case process.RuleValExpr, process.RuleExpr:
		return w.evaluate(&w.cur, row.CFA.Expr, nil)
	}
	return 0, false
}

type ruleState uint8

const (
	ruleSame ruleState = iota
	ruleHas
	ruleFailed // needs a register that is not known, or has a bad expression
	ruleBeyond // needs a word that is not in the copy
)

// failed returns the reason why the walk ends at a frame whose rule for the return address has failed.
func (w *Walker) failed(state ruleState) profile.Reason {
	if state == ruleBeyond {
		return w.beyond()
	}
	return profile.NoUnwindInfo
}

// ruleValue computes the value of one register in the caller, by its unwind rule.
func (w *Walker) ruleValue(old *cursor, cfa uint64, r *process.Rule) (uint64, ruleState) {
	var v uint64
	ok, failed := true, ruleFailed
	switch r.Kind {
	case process.RuleSame:
		return 0, ruleSame
	case process.RuleUndefined:
		return 0, ruleFailed
	case process.RuleOffset:
		at := cfa + uint64(int64(r.Off))
		if at < old.sp {
			// The rules of compilers do not show that an epilogue has popped a register. But a slot below the stack pointer
			// shows it.
			return 0, ruleSame
		}
		v, ok = w.word(at)
		failed = ruleBeyond
	case process.RuleValOffset:
		v = cfa + uint64(int64(r.Off))
	case process.RuleRegister:
		ok = int(r.Reg) < arch.MaxRegs && old.known&(1<<r.Reg) != 0
		if ok {
			v = old.regs[r.Reg] + uint64(int64(r.Off))
		}
	case process.RuleExpr:
		var at uint64
		if at, ok = w.evaluate(old, r.Expr, &cfa); ok {
			v, ok = w.word(at)
			failed = ruleBeyond
		}
	case process.RuleValExpr:
		v, ok = w.evaluate(old, r.Expr, &cfa)
	}
	if !ok {
		return 0, failed
	}
	return v, ruleHas
}
