package arm64

import (
	"testing"

	"goprof/arch"
)

// FuzzTrace reads arbitrary code ahead. The result does not depend on the code's address, nor on what the tracer did
// before. The result names only registers that exist.
func FuzzTrace(f *testing.F) {
	for _, words := range []string{
		// sub sp, sp, #0x30; stp x29, x30, [sp, #0x20]; ldp x29, x30, [sp, #0x20]; add sp, sp, #0x30; ret
		"d100c3ff a9027bfd a9427bfd 9100c3ff d65f03c0",
		// ldr x9, [x29, #-8]; mov sp, x29; ldp x29, x30, [sp], #16; and sp, x9, #-16; ret
		"f85f83a9 910003bf a8c17bfd 927ced3f d65f03c0",
		// ldp x28, x29, [sp], #16; mov sp, x29; ldp x29, x30, [sp], #16; br x3
		"a8c177fc 910003bf a8c17bfd d61f0060",
		// mov x8, #-32; st1 {v4.1d-v7.1d}, [sp], x8; mov sp, x1; mov x30, sp; br x30
		"928003e8 0c882fe4 9100003f 910003fe d61f03c0",
		// Two pieces of String.compareTo: a half of the second one's begin is the end of the first.
		"6b040040 1a84d044 34000044 13017c42 6b040040 1a84d044 34000044 d503201f d503201f",
	} {
		code, _ := assemble(f, words)
		f.Add(code, uint16(0), uint16(0x30))
	}
	used := CPU.NewTracer(CPU.Java)
	f.Fuzz(func(t *testing.T, code []byte, pc, frame uint16) {
		if len(code) > 1<<14 {
			return
		}
		const base = 0x7f0000001000
		stop := func(at uint64) bool { return (at-base)%64 == uint64(frame)%64 }
		for name, trace := range map[string]func(tr arch.Tracer, base uint64) (arch.Exit, error){
			"Trace": func(tr arch.Tracer, base uint64) (arch.Exit, error) { return tr.Trace(code, base, base+uint64(pc), 0) },
			"framed": func(tr arch.Tracer, base uint64) (arch.Exit, error) {
				return tr.Trace(code, base, base+uint64(pc), int32(frame))
			},
			"TraceTo": func(tr arch.Tracer, base uint64) (arch.Exit, error) {
				return tr.TraceTo(code, base, base+uint64(pc), int32(frame), stop)
			},
			"TraceEntry": func(tr arch.Tracer, base uint64) (arch.Exit, error) {
				return tr.TraceEntry(code, base, base+uint64(pc))
			},
		} {
			exit, err := trace(used, 0)
			again, err2 := trace(CPU.NewTracer(CPU.Java), base)
			if exit != again || err != err2 {
				t.Fatalf("%s: %+v %v, elsewhere %+v %v", name, exit, err, again, err2)
			}
			if err == nil {
				checkExit(t, name, exit)
			}
		}
		var in arch.Inst
		CPU.Operands(code, uint32(pc))
		CPU.Condition(code, uint32(pc), uint32(pc))
		CPU.Condition(code, 0, uint32(pc))
		if CPU.Read(code, uint32(pc), &in) && (in.Len < CPU.MinInst || int(pc)+int(in.Len) > len(code) ||
			in.HasTarget && int(in.Target) >= len(code)) {
			t.Fatalf("Read: %+v", in)
		}
		last := uint32(0)
		CPU.Intrinsics(code, func(_ string, begin, end uint32) bool {
			if begin < last || end <= begin || int(end) > len(code) {
				t.Fatalf("Intrinsics: %d to %d of %d, behind %d", begin, end, len(code), last)
			}
			last = end
			return true
		})
		CPU.AfterLeave(code, uint64(pc))
		CPU.Enters(code)
		CPU.EndsInCall(code)
		CPU.LinkerStub(code)
		CPU.Detour(code)
		CPU.ThreadSlot(code)
		CPU.SenderSP(code)
		CPU.Trampoline(code, new(arch.Regs))
	})
}

func checkExit(t *testing.T, name string, e arch.Exit) {
	if s := e.Saved; s != (arch.Loc{}) && (s.Kind != arch.AtMem || s.Reg != x29 && (s.Reg != regSP || s.Off < 0)) {
		t.Fatalf("%s: Saved is %+v", name, e.Saved)
	}
	for what, l := range map[string]arch.Loc{"RA": e.RA, "SP": e.SP, "End": e.End, "FP": e.FP, "Target": e.Target,
		"Taken": e.Taken, "SenderSP": e.SenderSP, "ThrownAt": e.ThrownAt, "BCP": e.BCP} {
		if saved := l.Reg == arch.SavedSP && e.Saved.Kind == arch.AtMem; l.Kind > arch.AtMem ||
			l.Kind != arch.Unknown && l.Reg >= 32 && !saved {
			t.Fatalf("%s: %s is %+v", name, what, l)
		}
	}
	if e.SP.Kind == arch.AtMem {
		t.Fatalf("%s: SP is %+v", name, e.SP)
	}
}
