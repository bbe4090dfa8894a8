package unwind

import (
	"io"
	"testing"

	"goprof/arch"
	"goprof/arch/amd64"
	"goprof/process"
	"goprof/profile"
	"goprof/vmstructs"
)

// Each row names the reason why a native frame ends if its return address cannot be found.
func TestReasonsOfNativeFrames(t *testing.T) {
	const ra, rsp = 16, 7
	sp := process.Rule{Kind: process.RuleRegister, Reg: rsp, Off: 16}
	rows := []struct {
		name string
		cfa  process.Rule
		ra   process.Rule
		cut  bool
		why  profile.Reason
		root bool
	}{
		{name: "on the stack", cfa: sp, ra: process.Rule{Kind: process.RuleOffset, Off: -8}},
		{name: "the root", cfa: sp, ra: process.Rule{Kind: process.RuleUndefined}, root: true},
		{name: "beyond the stack", cfa: sp, ra: process.Rule{Kind: process.RuleOffset, Off: 800}, why: profile.StackRange},
		{name: "beyond the copy", cfa: sp, ra: process.Rule{Kind: process.RuleOffset, Off: 800}, cut: true,
			why: profile.StackCut},
		{name: "a signal frame beyond the copy", cfa: sp,
			ra: process.Rule{Kind: process.RuleExpr, Expr: []byte{0x77, 0xf8, 0x06}}, cut: true,
			why: profile.StackCut},
		{name: "in a register that is not known", cfa: sp, ra: process.Rule{Kind: process.RuleRegister, Reg: 20},
			why: profile.NoUnwindInfo},
		{name: "by a bad expression", cfa: sp, ra: process.Rule{Kind: process.RuleValExpr, Expr: []byte{0xff}},
			why: profile.NoUnwindInfo},
		{name: "a frame at a register that is not known", cfa: process.Rule{Kind: process.RuleRegister, Reg: 20},
			why: profile.NoUnwindInfo},
	}
	for _, r := range rows {
		w := evaluator()
		w.cur.regs[rsp] = w.snap.SP
		w.snap.Cut = r.cut
		why, root := w.applyRow(&process.Row{CFA: r.cfa, RA: ra, Saved: []process.SavedReg{{Reg: ra, Rule: r.ra}}})
		if why != r.why || root != r.root {
			t.Errorf("%s: %v %v, want %v", r.name, why, root, r.why)
		}
	}
}

// A return address of 0 is the root of a thread only if unwind rules led to it.
func TestZeroIsTheRootOfNativeCodeOnly(t *testing.T) {
	w := evaluator()
	w.cur.regs[amd64.CPU.SP] = w.snap.SP
	clear(w.snap.Stack)
	if why, _ := w.applyRow(&process.Row{CFA: process.Rule{Kind: process.RuleRegister, Reg: 7, Off: 16}, RA: 16,
		Saved: []process.SavedReg{{Reg: 16, Rule: process.Rule{Kind: process.RuleOffset, Off: -8}}}}); why != profile.Whole {
		t.Fatal(why)
	}
	if why, root := w.notCode(); why != profile.Whole || !root {
		t.Errorf("out of a native frame: %v %v", why, root)
	}
	w.toCaller(0, w.snap.SP+16, 0, false)
	if why, root := w.notCode(); why != profile.NotCode || root {
		t.Errorf("out of generated code: %v %v", why, root)
	}
}

// The rules of compilers do not show that an epilogue has popped a register. Then the register's slot is below the
// stack pointer, and the register already has its caller's value.
func TestPoppedRegister(t *testing.T) {
	const ra, rbx, rbp = 16, 3, 6
	saved := func(reg uint8, off int64) process.SavedReg {
		return process.SavedReg{Reg: reg, Rule: process.Rule{Kind: process.RuleOffset, Off: int32(off)}}
	}
	w := evaluator()
	w.cur.sp = w.snap.SP + 16 // rbx was popped; rbp and the return address were not
	w.cur.regs[amd64.CPU.SP] = w.cur.sp
	before := w.cur.regs[rbx]
	row := &process.Row{CFA: process.Rule{Kind: process.RuleRegister, Reg: uint8(amd64.CPU.SP), Off: 16}, RA: ra,
		Saved: []process.SavedReg{saved(rbx, -24), saved(rbp, -16), saved(ra, -8)}}
	if why, _ := w.applyRow(row); why != profile.Whole {
		t.Fatal(why)
	}
	if got := w.cur.regs[rbx]; got != before || !w.isKnown(rbx) {
		t.Errorf("rbx is %#x, known %v, want %#x as it was", got, w.isKnown(rbx), before)
	}
	if got := w.cur.regs[rbp]; got != 0x2222 {
		t.Errorf("rbp is %#x, want what the stack holds", got)
	}
}

// A step to another frame clears what the cursor knows about the step to the previous frame.
func TestCursorForgets(t *testing.T) {
	sp := uint8(amd64.CPU.SP)
	steps := map[string]func(w *Walker){
		"by a rule of native code": func(w *Walker) {
			w.applyRow(&process.Row{CFA: process.Rule{Kind: process.RuleRegister, Reg: sp, Off: 16}, RA: 16,
				Saved: []process.SavedReg{{Reg: 16, Rule: process.Rule{Kind: process.RuleOffset, Off: -8}}}})
		},
		"to the caller of generated code": func(w *Walker) { w.toCaller(0x1234, w.snap.SP+16, 0, false) },
		"to a new walk":                   func(w *Walker) { w.begin() },
	}
	for name, step := range steps {
		w := evaluator()
		w.cur.regs[sp] = w.snap.SP
		w.cur.callee, w.cur.interpreted, w.cur.calledSP, w.cur.frameless = &vmstructs.Method{}, true, 8, true
		step(w)
		if c := w.cur; c.callee != nil || c.interpreted || c.calledSP != 0 || c.frameless {
			t.Errorf("%s: %v %v %#x %v", name, c.callee, c.interpreted, c.calledSP, c.frameless)
		}
	}
}

// Words below the stack pointer are left from frames that have ended.
func TestDeadWordsAreNotRead(t *testing.T) {
	w := evaluator()
	sp := uint8(amd64.CPU.SP)
	w.cur.sp = w.snap.SP + 16
	w.cur.regs[sp] = w.cur.sp
	if v, ok := w.eval(arch.Loc{Kind: arch.AtMem, Reg: sp}); !ok || v != 0x2222 {
		t.Errorf("on top: %#x %v", v, ok)
	}
	if v, ok := w.eval(arch.Loc{Kind: arch.AtMem, Reg: sp, Off: -8}); ok {
		t.Errorf("below: %#x", v)
	}
}

// jitTarget has code of no file at every address.
type jitTarget struct{ noTarget }

func (jitTarget) Code(pc uint64, _ bool) (process.Code, bool) {
	return process.Code{Image: process.JITCode, Offset: pc & 0xfff}, true
}

func (jitTarget) Read(uint64, []byte) error { return io.EOF }

// Code of no file comes and goes: results for it are not cached, and a million pcs have one function.
func TestCodeOfNoFileIsNotKept(t *testing.T) {
	w := New(jitTarget{}, nil)
	for _, exact := range []bool{true, false} {
		first := *w.native(0x1000, exact)
		for pc := uint64(0x1001); pc < 0x1100; pc++ {
			if site := w.native(pc, exact); site.fn != first.fn || site.gap != first.gap || site.fn != site.gap {
				t.Fatalf("at %#x: %v, %v", pc, site.fn, site.gap)
			}
		}
	}
	if len(w.natives) > 0 {
		t.Errorf("%d sites are kept", len(w.natives))
	}
	if n := testing.AllocsPerRun(10, func() { w.native(0x1234, true) }); n > 0 {
		t.Errorf("%v allocations at a pc", n)
	}
}
