package amd64

import (
	"testing"

	"goprof/arch"
)

// FuzzTrace reads arbitrary code ahead. The result does not depend on the code's address, nor on what the tracer did
// before. The result names only registers that exist.
func FuzzTrace(f *testing.F) {
	f.Add([]byte{0x55, 0x48, 0x83, 0xec, 0x20, 0xe8, 0, 0, 0, 0, 0x48, 0x83, 0xc4, 0x20, 0x5d, 0xc3}, uint16(1),
		uint16(0x30))
	// rbp from an unknown rsp
	f.Add([]byte{0x48, 0x89, 0xe1, 0x48, 0x29, 0xc4, 0x48, 0x89, 0xe5, 0x48, 0x89, 0xcc, 0xc3}, uint16(0), uint16(0))
	f.Add([]byte{0x48, 0x89, 0xe1, 0x48, 0x29, 0xc4, 0x49, 0x89, 0xe3, 0x48, 0x89, 0xcc, 0x41, 0xff, 0xe3}, uint16(0),
		uint16(0))
	used := newTracer()
	f.Fuzz(func(t *testing.T, code []byte, pc, frame uint16) {
		if len(code) > 1<<14 {
			return
		}
		const base = 0x7f0000001000
		for name, trace := range map[string]func(tr arch.Tracer, base uint64) (arch.Exit, error){
			"Trace": func(tr arch.Tracer, base uint64) (arch.Exit, error) { return tr.Trace(code, base, base+uint64(pc), 0) },
			"framed": func(tr arch.Tracer, base uint64) (arch.Exit, error) {
				return tr.Trace(code, base, base+uint64(pc), int32(frame))
			},
			"TraceTo": func(tr arch.Tracer, base uint64) (arch.Exit, error) {
				return tr.TraceTo(code, base, base+uint64(pc), int32(frame),
					func(at uint64) bool { return (at-base)%16 == uint64(frame)%16 })
			},
			"TraceEntry": func(tr arch.Tracer, base uint64) (arch.Exit, error) {
				return tr.TraceEntry(code, base, base+uint64(pc))
			},
		} {
			exit, err := trace(used, 0)
			again, err2 := trace(newTracer(), base)
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
		CPU.AfterLeave(code, uint64(pc))
		CPU.Enters(code)
		CPU.EndsInCall(code)
		CPU.Intrinsics(code, func(name string, begin, end uint32) bool {
			if begin >= end || int(end) > len(code) {
				t.Fatalf("Intrinsics: %s from %d to %d", name, begin, end)
			}
			return true
		})
		CPU.LongJumps(code, func(at, target uint32) {
			if int(at) >= len(code) || int(target) >= len(code) {
				t.Fatalf("LongJumps: at %d to %d", at, target)
			}
		})
		CPU.LinkerStub(code)
	})
}

func checkExit(t *testing.T, name string, e arch.Exit) {
	if e.Saved != (arch.Loc{}) && (e.Saved.Kind != arch.AtMem || e.Saved.Reg != rsp || e.Saved.Off < 0) {
		t.Fatalf("%s: Saved is %+v", name, e.Saved)
	}
	for what, l := range map[string]arch.Loc{"RA": e.RA, "SP": e.SP, "End": e.End, "FP": e.FP, "Target": e.Target,
		"Taken": e.Taken, "SenderSP": e.SenderSP, "ThrownAt": e.ThrownAt} {
		if saved := l.Reg == arch.SavedSP && e.Saved.Kind == arch.AtMem; l.Kind > arch.AtMem ||
			l.Kind != arch.Unknown && l.Reg >= 16 && !saved {
			t.Fatalf("%s: %s is %+v", name, what, l)
		}
	}
	if e.SP.Kind == arch.AtMem && !e.Jump {
		t.Fatalf("%s: SP is %+v", name, e.SP)
	}
}
