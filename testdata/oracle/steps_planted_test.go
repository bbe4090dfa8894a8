//go:build linux

package oracle

import (
	"encoding/binary"
	"encoding/hex"
	"slices"
	"testing"

	"goprof/arch/cpus"
	"goprof/profile"
)

// The machine of these tests: code at plantedPC, and a stack of which each word is told.
const (
	plantedPC = 0x1000
	plantedSP = 0x8000
)

// plant makes a moment. code is what stands at pc; link is the return address that was just made, or 0.
func plant(what, name string, pc, sp uint64, code string, link uint64, frames ...physical) *moment {
	m := &moment{pc: pc, sp: sp, where: place{what, name, pc &^ 0xfff}, stackAt: sp, frames: frames}
	raw, _ := hex.DecodeString(code)
	copy(m.code[:], raw)
	if pushed > 0 {
		m.stack = binary.LittleEndian.AppendUint64(m.stack, link)
	} else if cpu := cpus.Here(); cpu.ReturnsInRegister {
		m.regs[cpu.LR] = link
	}
	return m
}

// frame makes a physical frame of one method.
func frame(kind profile.Kind, name string, line int32, pc, sp, slot uint64) physical {
	fn := &profile.Func{Name: name}
	return physical{pc: pc, sp: sp, slot: slot,
		methods: []profile.Frame{{Func: fn, Kind: kind, Line: line, PC: pc, SP: sp}}}
}

func interpreted(name string, pc, sp, slot uint64) physical {
	p := frame(profile.Interpreted, name, 7, pc, sp, slot)
	p.framed = true
	return p
}

// below are the callers of all these tests. Nothing that happens above touches them.
func below() []physical {
	return []physical{
		interpreted("caller", 0x5000, 0x8100, 0x80f0),
		frame(profile.C2, "root", 9, 0x6000, 0x8200, 0x81f8),
	}
}

type step struct{ before, after *moment }

// honest are steps as they happen, and what explains them.
func honest() map[string]step {
	on := func(top ...physical) []physical { return append(top, below()...) }
	at := func(what string, pc, sp uint64, code string, link uint64, frames ...physical) *moment {
		return plant(what, "somewhere", pc, sp, code, link, frames...)
	}
	method := func(pc, sp, slot uint64) physical { return frame(profile.C1, "method", 3, pc, sp, slot) }
	callee := func(pc, sp uint64) physical { return frame(profile.C2, "callee", 4, pc, sp, 0) }
	const called = plantedSP - pushed
	next := plantedPC + uint64(len(codeCall)/2)
	return map[string]step{
		byNothing: {
			at(inMethod, plantedPC, plantedSP, codeOther, 0, on(method(plantedPC, plantedSP, 0))...),
			at(inMethod, plantedPC+4, plantedSP, codeOther, 0, on(method(plantedPC+4, plantedSP, 0))...)},
		byCall: {
			at(inMethod, plantedPC, plantedSP, codeCall, 0, on(method(plantedPC, plantedSP, 0))...),
			at(inMethod, 0x2000, called, codeOther, next, on(callee(0x2000, called), method(next, plantedSP, plantedSlot))...)},
		byReturn: {
			at(inMethod, 0x2010, called, codeReturn, next, on(callee(0x2010, called), method(next, plantedSP, plantedSlot))...),
			at(inMethod, next, plantedSP, codeOther, 0, on(method(next, plantedSP, 0))...)},
		"C tail call": {
			at(inNative, plantedPC, plantedSP, codeJump, 0, on(frame(profile.Native, "thunk", 0, plantedPC, plantedSP, 0))...),
			at(inNative, 0x2000, plantedSP, codeOther, 0, on(frame(profile.Native, "target", 0, 0x2000, plantedSP, 0))...)},
		"interpreter invokes by a pushed address and a jump": {
			plant(inInterpreter, "invokestatic", plantedPC, called, codeJump, 0x1800,
				on(interpreted("invoker", plantedPC, called, 0))...),
			plant(inInterpreter, "method entry point (kind = zerolocals)", 0x2000, called, codeOther, 0x1800,
				on(frame(profile.Interpreted, "invoked", 1, 0x2000, called, 0),
					interpreted("invoker", 0x1800, plantedSP, plantedSlot))...)},
		"signal return": {
			plant(inNative, signalReturn, plantedPC, plantedSP-0x80, codeSyscall, 0,
				on(frame(profile.Native, signalReturn, 0, plantedPC, plantedSP-0x80, 0), method(0x2000, plantedSP, 0))...),
			at(inMethod, 0x2000, plantedSP, codeOther, 0, on(method(0x2000, plantedSP, 0))...)},
	}
}

// TestJudge: steps as they happen are explained, and a walk that has one frame wrong is not.
func TestJudge(t *testing.T) {
	for want, s := range honest() {
		if by, err := judge(s.before, s.after); by != want {
			t.Errorf("%s is explained by %q: %v", want, by, err)
		}
		for name, wrong := range plantedFaults {
			spoilt := honest()[want]
			wrong(spoilt.after)
			if by, err := judge(spoilt.before, spoilt.after); err == nil {
				t.Errorf("%s, %s: explained by %q", want, name, by)
			}
		}
	}
}

// plantedFaults make the later one of two walks wrong. The lowest two frames are callers in all
// the steps above.
var plantedFaults = map[string]func(*moment){
	"the topmost frame is missing": func(m *moment) { m.frames = m.frames[1:] },
	"a caller is missing": func(m *moment) {
		m.frames = slices.Delete(m.frames, len(m.frames)-2,
			len(m.frames)-1)
	},
	"all callers are missing": func(m *moment) { m.frames = m.frames[:1] },
	"the root is missing":     func(m *moment) { m.frames = m.frames[:len(m.frames)-1] },
	"a frame is invented": func(m *moment) {
		m.frames = slices.Insert(m.frames, 1, frame(profile.C1, "ghost", 1, 0x7000, plantedSP+16, plantedSP+8))
	},
	"a frame is there twice": func(m *moment) {
		m.frames = slices.Insert(m.frames, len(m.frames)-1,
			m.frames[len(m.frames)-2])
	},
	"a caller's pc is another":     func(m *moment) { m.frames[len(m.frames)-2].pc++ },
	"a caller's sp is another":     func(m *moment) { m.frames[len(m.frames)-1].sp += 8 },
	"its return address has moved": func(m *moment) { m.frames[len(m.frames)-1].slot -= 8 },
	"a caller's line is another":   func(m *moment) { m.frames[len(m.frames)-1].methods[0].Line++ },
	"a caller's name is another": func(m *moment) {
		m.frames[len(m.frames)-2].methods[0].Func = &profile.Func{Name: "other"}
	},
	"a caller has a method inlined": func(m *moment) {
		m.frames[len(m.frames)-1].methods = append([]profile.Frame{{Func: &profile.Func{}}},
			m.frames[len(m.frames)-1].methods...)
	},
	"a caller's kind is another": func(m *moment) { m.frames[len(m.frames)-1].methods[0].Kind = profile.C1 },
	"two callers have changed place": func(m *moment) {
		n := len(m.frames)
		m.frames[n-1], m.frames[n-2] = m.frames[n-2],
			m.frames[n-1]
	},
}

// TestJudgeKnowsItsCaller: faults in the frames that the instruction itself has changed.
func TestJudgeKnowsItsCaller(t *testing.T) {
	rows := []struct {
		name string
		step string
		do   func(s step)
	}{
		{"a call whose callee is not there", byCall, func(s step) { s.after.frames = s.after.frames[1:] }},
		{"the new caller is one byte off", byCall, func(s step) { s.after.frames[1].pc++ }},
		{"the new caller's sp is one word off", byCall, func(s step) { s.after.frames[1].sp += 8 }},
		{"the new caller's return address is not where a call leaves it", byCall, func(s step) { misplace(s.after) }},
		{"the new caller is another method", byCall,
			func(s step) { s.after.frames[1].methods[0].Func = &profile.Func{Name: "other"} }},
		{"a call that left no frame", byCall, func(s step) { s.after.frames = slices.Delete(s.after.frames, 1, 2) }},
		{"a return to where nothing stood", byReturn, func(s step) { misplace(s.before) }},
		{"a return into another method", byReturn,
			func(s step) { s.after.frames[0].methods[0].Func = &profile.Func{Name: "other"} }},
		{"a return past a frame", byReturn, func(s step) { s.after.frames = s.after.frames[1:] }},
		{"another method without a jump", byNothing,
			func(s step) { s.after.frames[0].methods[0].Func = &profile.Func{Name: "other"} }},
		{"an invocation by another method", "interpreter invokes by a pushed address and a jump",
			func(s step) { s.after.frames[1].methods[0].Func = &profile.Func{Name: "other"} }},
		{"a signal's end elsewhere", "signal return", func(s step) { s.after.frames[0].sp += 16 }},
		{"a C function that jumps into Java", "C tail call", func(s step) { s.after.frames[0].sp += 16; s.after.sp += 16 }},
	}
	for _, r := range rows {
		s := honest()[r.step]
		r.do(s)
		if by, err := judge(s.before, s.after); err == nil {
			t.Errorf("%s: explained by %q", r.name, by)
		}
	}
}

// TestJudgeAcross: while a compiled frame becomes interpreted ones, methods stay what they are.
func TestJudgeAcross(t *testing.T) {
	before := func() *moment {
		compiled := frame(profile.C2, "outer", 3, 0x2000, plantedSP+0x40, plantedSP+0x38)
		compiled.methods = append([]profile.Frame{{Func: &profile.Func{Name: "inner"}, Kind: profile.Inlined}},
			compiled.methods...)
		return plant("deoptimization", "blob", plantedPC, plantedSP, codeOther, 0,
			append([]physical{frame(profile.Stub, "blob", 0, plantedPC, plantedSP, 0), compiled}, below()...)...)
	}
	after := func() *moment {
		return plant("deoptimization", "blob", plantedPC+0x80, plantedSP-0x40, codeOther, 0,
			append([]physical{frame(profile.Stub, "blob", 0, plantedPC+0x80, plantedSP-0x40, 0),
				interpreted("inner", 0x3000, plantedSP, plantedSP-8),
				interpreted("outer", 0x3100, plantedSP+0x40, plantedSP+0x38)}, below()...)...)
	}
	if by, err := judgeAcross(before(), after()); by != byRebuilding {
		t.Errorf("explained by %q: %v", by, err)
	}
	wrong := after()
	wrong.frames = slices.Delete(wrong.frames, 1, 2)
	if by, err := judgeAcross(before(), wrong); err == nil {
		t.Errorf("a method is missing: explained by %q", by)
	}
	wrong = after()
	wrong.frames[len(wrong.frames)-1].sp += 8
	if by, err := judgeAcross(before(), wrong); err == nil {
		t.Errorf("the root is elsewhere: explained by %q", by)
	}
}

// TestJudgeCut: what is there of a stack that is cut short must be right.
func TestJudgeCut(t *testing.T) {
	cut := func() (before, after *moment) {
		s := honest()[byNothing]
		s.after.frames, s.after.why = s.after.frames[:3], profile.NotCode
		return s.before, s.after
	}
	before, after := cut()
	if err := judgeCut(before, after); err != nil {
		t.Error(err)
	}
	for name, wrong := range map[string]func(*moment){
		"a caller is left out":  func(m *moment) { m.frames = slices.Delete(m.frames, 1, 2) },
		"a caller is elsewhere": func(m *moment) { m.frames[2].sp += 8 },
		"the last is another":   func(m *moment) { m.frames[2].pc++ },
	} {
		before, after := cut()
		wrong(after)
		if judgeCut(before, after) == nil {
			t.Errorf("%s: not noticed", name)
		}
	}
}

// TestInlinedIsFree: what is inlined on top may change at every instruction, even across a call.
func TestInlinedIsFree(t *testing.T) {
	for name, s := range honest() {
		top := &s.before.frames[0].methods
		*top = append([]profile.Frame{{Func: &profile.Func{Name: "inlined"}, Kind: profile.Inlined}}, *top...)
		if by, _ := judge(s.before, s.after); by != name {
			t.Errorf("%s is explained by %q", name, by)
		}
	}
}
