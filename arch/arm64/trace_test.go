package arm64

import (
	"encoding/binary"
	"strconv"
	"strings"
	"testing"

	"goprof/arch"
)

func mem(reg int, off int32) arch.Loc { return arch.MemAt(uint8(reg), off) }
func val(reg int, off int32) arch.Loc { return arch.RegPlus(uint8(reg), off) }

// assemble turns words into code; ^ marks the pc.
func assemble(t testing.TB, s string) (code []byte, pc uint64) {
	t.Helper()
	for _, word := range strings.Fields(s) {
		if strings.HasPrefix(word, "^") {
			pc = uint64(len(code))
		}
		w, err := strconv.ParseUint(strings.Trim(word, "^|"), 16, 32)
		if err != nil {
			t.Fatal(err)
		}
		code = binary.LittleEndian.AppendUint32(code, uint32(w))
	}
	return code, pc
}

// traced is the part of an Exit that a row of a table checks.
func traced(e arch.Exit) arch.Exit {
	e.Taken, e.End, e.BCP, e.SenderSP, e.ThrownAt, e.WritesRA, e.Calls, e.Kept = arch.Loc{}, arch.Loc{}, arch.Loc{},
		arch.Loc{}, arch.Loc{}, false, false, 0
	return e
}

// Each row is one place in code as HotSpot makes it (cpu/aarch64 of JDK 17 and 25), assembled with binutils.
func TestTrace(t *testing.T) {
	const sp, fp, lr = regSP, x29, x30
	atEntry := arch.Exit{RA: val(lr, 0), SP: val(sp, 0), FP: val(fp, 0)}
	whole := arch.Exit{RA: mem(sp, 0x28), SP: val(sp, 0x30), FP: mem(sp, 0x20)}
	jumps := func(e arch.Exit) arch.Exit { e.Jump = true; return e }
	rows := []struct {
		name string
		want arch.Exit
		code string
	}{
		{"C2 entry, before the bang", atEntry,
			// ^nop; sub x9, sp, #0x14, lsl #12; str xzr, [x9]; sub sp, sp, #0x30; stp x29, x30, [sp, #0x20]; nop; ldp
			// x29, x30, [sp, #0x20]; add sp, sp, #0x30; ret
			"^d503201f d14053e9 f900013f d100c3ff a9027bfd d503201f a9427bfd 9100c3ff d65f03c0",
		},
		{"C2, room made, nothing saved", arch.Exit{RA: val(lr, 0), SP: val(sp, 0x30), FP: val(fp, 0)},
			// sub sp, sp, #0x30; ^stp x29, x30, [sp, #0x20]; nop; ldp x29, x30, [sp, #0x20]; add sp, sp, #0x30; ret
			"d100c3ff ^a9027bfd d503201f a9427bfd 9100c3ff d65f03c0",
		},
		{"C2 body, past a call", whole,
			// sub sp, sp, #0x30; stp x29, x30, [sp, #0x20]; ^nop; bl .+0x1000; ldp x29, x30, [sp, #0x20]; add sp, sp,
			// #0x30; ret
			"d100c3ff a9027bfd ^d503201f 94000400 a9427bfd 9100c3ff d65f03c0",
		},
		{"a C function's epilogue, before its first load", arch.Exit{RA: mem(sp, 8), SP: val(sp, 48), FP: mem(sp, 0)},
			"^a94153f3 a8c37bfd d65f03c0", // ^ldp x19, x20, [sp, #16]; ldp x29, x30, [sp], #48; ret
		},
		{"a C function's epilogue, before its return", atEntry,
			"a94153f3 a8c37bfd ^d65f03c0", // ldp x19, x20, [sp, #16]; ldp x29, x30, [sp], #48; ^ret
		},
		{"C2 epilogue, registers back, room not", arch.Exit{RA: val(lr, 0), SP: val(sp, 0x30), FP: val(fp, 0)},
			"a9427bfd ^9100c3ff d65f03c0", // ldp x29, x30, [sp, #0x20]; ^add sp, sp, #0x30; ret
		},
		{"C2 at the return poll", atEntry,
			// add sp, sp, #0x30; ^ldr x8, [x28, #0x40]; cmp sp, x8; b.hi p; ret; p: adr x8, p; str x8, [x28, #0x388]; b
			// .+0x1000
			"9100c3ff ^f9402388 eb2863ff 54000048 d65f03c0 10000008 f901c788 14000400",
		},
		{"C2 in the poll's stub", jumps(atEntry),
			"d65f03c0 10000008 ^f901c788 14000400", // ret; p: adr x8, p; ^str x8, [x28, #0x388]; b .+0x1000
		},
		{"C2 in the poll's stub, far away from where it goes", jumps(atEntry),
			// ret; p: ^adr x8, p; str x8, [x28, #0x388]; adrp x8, 0x10000000; add x8, x8, #0x40; br x8
			"d65f03c0 ^10000008 f901c788 90000008 91010108 d61f0100",
		},
		{"large frame, after the push", arch.Exit{RA: mem(sp, 8), SP: val(sp, 16), FP: mem(sp, 0)},
			// stp x29, x30, [sp, #-16]!; ^mov x8, #0x1000; sub sp, sp, x8; nop; mov x8, #0x1000; add sp, sp, x8; ldp
			// x29, x30, [sp], #16; ret
			"a9bf7bfd ^d2820008 cb2863ff d503201f d2820008 8b2863ff a8c17bfd d65f03c0",
		},
		{"large frame, whole", arch.Exit{RA: mem(sp, 0x12348), SP: val(sp, 0x12350), FP: mem(sp, 0x12340)},
			// ^nop; mov x8, #0x2340; movk x8, #1, lsl #16; add sp, sp, x8; ldp x29, x30, [sp], #16; ret
			"^d503201f d2846808 f2a00028 8b2863ff a8c17bfd d65f03c0",
		},
		{"signed return address, before", atEntry,
			// ^paciasp; sub sp, sp, #0x30; stp x29, x30, [sp, #0x20]; ldp x29, x30, [sp, #0x20]; add sp, sp, #0x30;
			// autiasp; ret
			"^d503233f d100c3ff a9027bfd a9427bfd 9100c3ff d50323bf d65f03c0",
		},
		{"signed return address, whole", whole,
			"^d503201f a9427bfd 9100c3ff d65f0bff", // ^nop; ldp x29, x30, [sp, #0x20]; add sp, sp, #0x30; retaa
		},
		{"stub with enter and leave, stack pointer of unknown origin",
			arch.Exit{RA: mem(fp, 8), SP: val(fp, 16), FP: mem(fp, 0)},
			// stp x29, x30, [sp, #-16]!; mov x29, sp; ^sub sp, sp, x3; mov sp, x29; ldp x29, x30, [sp], #16; ret
			"a9bf7bfd 910003fd ^cb2363ff 910003bf a8c17bfd d65f03c0",
		},
		{"the other way out of a leave", arch.Exit{RA: mem(sp, 8), SP: val(sp, 16), FP: mem(sp, 0)},
			"910003bf ^a8c17bfd d65f03c0", // mov sp, x29; ^ldp x29, x30, [sp], #16; ret
		},
		{"leaf stub with a loop", atEntry,
			// ^a: ldr x8, [x0], #8; str x8, [x1], #8; subs x2, x2, #1; b.ne a; ret
			"^f8408408 f8008428 f1000442 54ffffa1 d65f03c0",
		},
		{"leaf stub that pushes", arch.Exit{RA: val(lr, 0), SP: val(sp, 64), FP: val(fp, 0)},
			// ^ld1 {v8.1d-v11.1d}, [sp], #32; ldp x19, x20, [sp, #16]; add sp, sp, #32; ret
			"^0cdf2fe8 a94153f3 910083ff d65f03c0",
		},
		{"the interpreter leaves a frame", arch.Exit{RA: mem(fp, 8), SP: val(arch.SavedSP, 0), FP: mem(fp, 0),
			Saved: mem(fp, -8)},
			// ^ldr x9, [x29, #-8]; mov sp, x29; ldp x29, x30, [sp], #16; mov x20, x9; and sp, x20, #-16; ret
			"^f85f83a9 910003bf a8c17bfd aa0903f4 927cee9f d65f03c0",
		},
		{"the interpreter has left a frame", arch.Exit{RA: val(lr, 0), SP: val(9, 0), FP: val(fp, 0)},
			// mov sp, x29; ldp x29, x30, [sp], #16; ^mov x20, x9; and sp, x20, #-16; ret
			"910003bf a8c17bfd ^aa0903f4 927cee9f d65f03c0",
		},
		{"intrinsic entry that keeps its return address in x23",
			arch.Exit{RA: val(lr, 0), SP: val(x19, 0), FP: val(fp, 0), Jump: true, Indirect: true, Target: val(lr, 0)},
			"^fd400280 9100027f aa1e03f7 d61f02e0", // ^ldr d0, [x20]; mov sp, x19; mov x23, x30; br x23
		},
		{"a template goes on to the next: no return address is in x9",
			arch.Exit{RA: val(lr, 0), SP: val(sp, 0), FP: val(fp, 0), Jump: true, Indirect: true},
			"f8695aa9 ^d61f0120", // ldr x9, [x21, w9, uxtw #3]; ^br x9
		},
		{"a branch goes over to compiled code through a field of the nmethod (templateTable_aarch64.cpp, branch)",
			arch.Exit{RA: val(lr, 0), SP: val(20, 0), FP: val(fp, 0), Jump: true, Indirect: true, Through: mem(x19, 0x80)},
			"^9100029f f9404268 d61f0100", // ^mov sp, x20; ldr x8, [x19, #0x80]; br x8
		},
		{"all registers are being restored, the frame pointer among them",
			arch.Exit{RA: mem(arch.SavedSP, 8), SP: val(arch.SavedSP, 16), FP: mem(arch.SavedSP, 0), Saved: mem(sp, 8)},
			"^a8c177fc 910003bf a8c17bfd d65f03c0", // ^ldp x28, x29, [sp], #16; mov sp, x29; ldp x29, x30, [sp], #16; ret
		},
		{"vectors are being saved downwards", arch.Exit{RA: mem(sp, 72), SP: val(sp, 80), FP: mem(sp, 64)},
			// mov x8, #-32; sub sp, sp, #32; ^st1 {v4.1d-v7.1d}, [sp], x8; st1 {v0.1d-v3.1d}, [sp]; add sp, sp, #96;
			// ldp x29, x30, [sp], #16; ret
			"928003e8 d10083ff ^0c882fe4 0c002fe0 910183ff a8c17bfd d65f03c0",
		},
		{"a saved frame pointer overwritten by a vector", arch.Exit{RA: mem(sp, 8), SP: val(sp, 16)},
			"^f90003fd 3d8003e0 a8c17bfd d65f03c0", // ^str x29, [sp]; str q0, [sp]; ldp x29, x30, [sp], #16; ret
		},
		{"vectors saved below it leave the return address alone", atEntry,
			// ^stp x29, x30, [sp, #-16]!; stp d8, d9, [sp, #-16]!; ldp d8, d9, [sp], #16; ldp x29, x30, [sp], #16; ret
			"^a9bf7bfd 6dbf27e8 6cc127e8 a8c17bfd d65f03c0",
		},
		{"a vector's end overwrites half of a saved frame pointer", arch.Exit{RA: mem(sp, 8), SP: val(sp, 16)},
			"^f90003fd fc0043e0 a8c17bfd d65f03c0", // ^str x29, [sp]; stur d0, [sp, #4]; ldp x29, x30, [sp], #16; ret
		},
		{"a zero byte overwrites nothing above it", atEntry,
			// ^stp x29, x30, [sp, #-16]!; sub sp, sp, #16; strb wzr, [sp]; add sp, sp, #16; ldp x29, x30, [sp], #16;
			// ret
			"^a9bf7bfd d10043ff 390003ff 910043ff a8c17bfd d65f03c0",
		},
		{"a computed jump to one of the last rounds of an unrolled loop",
			arch.Exit{RA: mem(fp, 8), SP: val(fp, 16), FP: mem(fp, 0)},
			// ^adr x8, end; sub x8, x8, w9, uxtw #3; br x8; ldrb w8, [x1], #1; madd w0, w0, w9, w8; end: mov sp, x29;
			// ldp x29, x30, [sp], #16; ret
			"^100000a8 cb294d08 d61f0100 38401428 1b092000 910003bf a8c17bfd d65f03c0",
		},
		{"a handler's stack pointer is the caller's frame pointer only at method handles",
			arch.Exit{RA: mem(fp, 8), SP: val(fp, 16), FP: mem(fp, 0)},
			// ^mov sp, x29; ldp x29, x30, [sp], #16; ldr w8, [x28, #808]; cbz w8, a; mov sp, x29; a: ret
			"^910003bf a8c17bfd b9432b88 34000048 910003bf d65f03c0",
		},
		{"and so where a stub unwinds an exception",
			arch.Exit{RA: mem(sp, 8), SP: val(sp, 16), FP: val(fp, 0), Jump: true, Indirect: true, Target: val(0, 0)},
			// ^mov x1, x0; ldr x30, [sp, #8]; add sp, sp, #16; mov x3, x30; ldr w8, [x28, #808]; cbz w8, a; mov sp,
			// x29; a: br x1
			"^aa0003e1 f94007fe 910043ff aa1e03e3 b9432b88 34000048 910003bf d61f0020",
		},
		{"an adapter of JDK 25 leaves a barrier's frame; ahead it saves all registers, more than are kept",
			arch.Exit{RA: mem(fp, 8), SP: val(fp, 16), FP: mem(fp, 0), Jump: true, Indirect: true},
			"^910003bf a8c17bfd aa0a03e8 a8c17fea b5000048 17ffe709 f9402588 b4000788 a9bf7bfd 910003fd a9b107e0 a9010fe2 " +
				"a90217e4 a9031fe6 a90427e8 a9052fea a90637ec a9073fee a90847f0 a9094ff2 a90a57f4 a90b5ff6 a90c67f8 a90d6ffa " +
				"a90e77fc b27bebe8 d10083ff 0c882ffc 0c882ff8 0c882ff4 0c882ff0 0c882fec 0c882fe8 0c882fe4 0c002fe0 aa0c03e0 " +
				"aa1e03e1 d290f408 f2b514e8 f2dfffe8 d63f0100 d5033fdf 0cdf2fe0 0cdf2fe4 0cdf2fe8 0cdf2fec 0cdf2ff0 0cdf2ff4 " +
				"0cdf2ff8 0cdf2ffc a9410fe2 a94217e4 a9431fe6 a94427e8 a9452fea a94637ec a9473fee a94847f0 a8c907e0 a94157f4 " +
				"a9425ff6 a94367f8 a9446ffa a94577fc a8c64ff2 910003bf a8c17bfd 910003f3 d10043ff a90007e2 910003f4 f9401d88 " +
				"d61f0100",
		},
		{"half of the frame pointer", arch.Exit{RA: val(lr, 0), SP: val(sp, 16)},
			"^b84107fd d65f03c0", // ^ldr w29, [sp], #16; ret
		},
		{"a trap on the first way, another way returns", atEntry,
			"^b4000040 d4200000 d65f03c0", // ^cbz x0, a; brk #0; a: ret
		},
	}
	for _, r := range rows {
		code, pc := assemble(t, r.code)
		got, err := CPU.NewTracer(CPU.Java).Trace(code, 0x1000, 0x1000+pc, 0)
		if got = traced(got); err != nil || got != r.want {
			t.Errorf("%s: got %+v, %v\nwant %+v", r.name, got, err, r.want)
		}
	}
}

// Some code takes a frame away because of an exception. Some code returns to an address that it has rewritten.
func TestTraceException(t *testing.T) {
	const sp, fp, lr = regSP, x29, x30
	type told struct {
		taken, thrown, ra arch.Loc
		writes            bool
	}
	for _, r := range []struct {
		name string
		want told
		code string
	}{
		{"an interpreted method was left, the VM is not asked yet",
			told{taken: val(lr, 0), thrown: val(lr, 0), ra: val(lr, 0)},
			// ^stp x0, x30, [sp, #-16]!; mov x0, x28; mov x1, x30; mov x8, #0x1234; blr x8; mov x1, x0; ldp x0, x30,
			// [sp], #16; mov x3, x30; br x1
			"^a9bf7be0 aa1c03e0 aa1e03e1 d2824688 d63f0100 aa0003e1 a8c17be0 aa1e03e3 d61f0020",
		},
		{"in the VM", told{taken: mem(sp, 8), thrown: mem(sp, 8), ra: mem(sp, 8)},
			"d63f0100 ^aa0003e1 a8c17be0 aa1e03e3 d61f0020", // blr x8; ^mov x1, x0; ldp x0, x30, [sp], #16; mov x3, x30; br x1
		},
		{"forward exception, in the VM", told{taken: val(x19, 0), thrown: val(x19, 0), ra: val(x19, 0)},
			"d63f0100 ^aa1303fe aa1303e3 aa0003f3 d61f0260", // blr x8; ^mov x30, x19; mov x3, x19; mov x19, x0; br x19
		},
		{"C2's exception blob: only x3 tells", told{taken: mem(sp, 8), thrown: mem(sp, 8)},
			"^94000400 a8c10ffd aa0003e8 d61f0100", // ^bl .+0x1000; ldp x29, x3, [sp], #16; mov x8, x0; br x8
		},
		{"C1's handler patches its return address", told{ra: mem(fp, 8), writes: true, taken: arch.Loc{}},
			// ^bl .+0x1000; str x0, [x29, #8]; mov sp, x29; ldp x29, x30, [sp], #16; ret
			"^94000400 f90007a0 910003bf a8c17bfd d65f03c0",
		},
		{"a poll's stub, before the pc comes out of the thread", told{ra: mem(sp, 8), writes: true},
			// stp x29, x30, [sp, #-16]!; ^mov x29, sp; ldr x20, [x28, #0x388]; str x20, [x29, #8]; bl .+0x1000; add
			// x20, x20,
			// #4; str x20, [x29, #8]; ldp x29, x30, [sp], #16; ret
			"a9bf7bfd ^910003fd f941c794 f90007b4 94000400 91001294 f90007b4 a8c17bfd d65f03c0",
		},
	} {
		code, pc := assemble(t, r.code)
		e, err := CPU.NewTracer(CPU.Java).Trace(code, 0x1000, 0x1000+pc, 0)
		got := told{taken: e.Taken, thrown: e.ThrownAt, ra: e.RA, writes: e.WritesRA}
		if !e.Jump {
			got.taken = arch.Loc{}
		}
		if err != nil || got != r.want {
			t.Errorf("%s: got %+v %v\nwant %+v", r.name, got, err, r.want)
		}
	}
}

// A long method: its return is far away, and the end of its prologue is near.
func TestTracePrologue(t *testing.T) {
	const sp, fp, lr = regSP, x29, x30
	built := func(ra, sp, fp arch.Loc) arch.Exit { return arch.Exit{RA: ra, SP: sp, FP: fp, FrameBuilt: true} }
	for _, r := range []struct {
		name string
		size int32
		want arch.Exit
		code string
	}{
		// ^sub sp, sp, #0x30; stp x29, x30, [sp, #0x20]; b .
		{"at the beginning", 0x30, built(val(lr, 0), val(sp, 0), val(fp, 0)), "^d100c3ff a9027bfd 14000000"},

		// sub sp, sp, #0x30; ^stp x29, x30, [sp, #0x20]; b .
		{"room made", 0x30, built(val(lr, 0), val(sp, 0x30), val(fp, 0)), "d100c3ff ^a9027bfd 14000000"},

		// ^stp x29, x30, [sp, #-16]!; mov x8, #0x1000; sub sp, sp, x8; b .
		{"large, at the beginning", 0x1010, built(val(lr, 0), val(sp, 0), val(fp, 0)),
			"^a9bf7bfd d2820008 cb2863ff 14000000"},

		// stp x29, x30, [sp, #-16]!; ^mov x8, #0x1000; sub sp, sp, x8; b .
		{"large, pushed", 0x1010, built(mem(sp, 8), val(sp, 16), mem(sp, 0)), "a9bf7bfd ^d2820008 cb2863ff 14000000"},
	} {
		code, pc := assemble(t, r.code)
		got, err := CPU.NewTracer(CPU.Java).Trace(code, 0, pc, r.size)
		if got = traced(got); err != nil || got != r.want {
			t.Errorf("%s: got %+v, %v\nwant %+v", r.name, got, err, r.want)
		}
	}
}

// The interpreter's method entry (generate_fixed_frame): its frame can be walked once the frame holds the sender's
// sp.
func TestTraceEntry(t *testing.T) {
	const sp, fp, lr = regSP, x29, x30
	code, _ := assemble(t,
		// and sp, x20, #-16; sub x20, sp, #0x60; stp x20, x22, [sp, #-0x60]!; stp xzr, x12, [sp, #0x30]; stp x29, x30,
		// [sp,
		// #0x50]; add x29, sp, #0x50; stp x24, x26, [sp, #0x10]; stp xzr, x19, [sp, #0x40]; mov sp, x8; ldr x9, [x21, w9,
		// uxtw #3]; br x9
		"927cee9f d10183f4 a9ba5bf4 a90333ff a9057bfd 910143fd a9016bf8 a9044fff 9100011f f8695aa9 d61f0120",
	)
	for pc := uint64(0); pc < uint64(len(code)); pc += 4 {
		e, err := CPU.NewTracer(CPU.Java).TraceEntry(code, 0, pc)
		ra, caller := val(lr, 0), val(fp, 0)
		if pc >= 6*4 { // the frame pointer is set
			ra, caller = mem(fp, 8), mem(fp, 0)
		} else if pc >= 5*4 {
			ra, caller = mem(sp, 0x58), mem(sp, 0x50)
		}
		if built := pc <= 7*4; err != nil || e.FrameBuilt != built ||
			built && (e.RA != ra || e.FP != caller || e.SenderSP != val(x19, 0)) {
			t.Errorf("at %#x: %+v %v", pc, e, err)
		}
	}
}

func TestTraceTo(t *testing.T) {
	const sp, fp, lr, size = regSP, x29, x30, 0x30
	whole := arch.Exit{RA: mem(sp, 0x28), SP: val(sp, 0x30), FP: mem(sp, 0x20), FrameBuilt: true}
	for _, r := range []struct {
		name string
		want arch.Exit
		code string // the bar marks a record of the debug information
	}{
		// ^a: add x0, x0, #1; |ldr x8, [x28, #0x40]; b a
		{"an endless loop with a poll", whole, "^91000400 |f9402388 17fffffe"},

		// ^sub sp, sp, #0x30; stp x29, x30, [sp, #0x20]; bl .+0x1000; |brk #0
		{"before the frame is made", arch.Exit{RA: val(lr, 0), SP: val(sp, 0), FP: val(fp, 0), FrameBuilt: true},
			"^d100c3ff a9027bfd 94000400 |d4200000"},

		{"a switch through a table", whole, "^10000008 8b090908 d61f0100"}, // ^adr x8, .; add x8, x8, x9, lsl #2; br x8

	} {
		code, pc := assemble(t, r.code)
		record := -1
		for i, word := range strings.Fields(r.code) {
			if strings.HasPrefix(word, "|") {
				record = 4 * i
			}
		}
		got, err := CPU.NewTracer(CPU.Java).TraceTo(code, 0x1000, 0x1000+pc, size,
			func(pc uint64) bool { return record >= 0 && pc == 0x1000+uint64(record) })
		if got = traced(got); err != nil || got != r.want {
			t.Errorf("%s: got %+v, %v\nwant %+v", r.name, got, err, r.want)
		}
	}
	for _, words := range []string{
		"^d503201f d65f03c0", // ^nop; ret
		"^14000000",          // ^b .
		"^d4200000",          // ^brk #0
		"^cb2063ff d61f0020", // ^sub sp, sp, x0; br x1
	} {
		code, pc := assemble(t, words)
		if got, err := CPU.NewTracer(CPU.Java).TraceTo(code, 0, pc, size, func(uint64) bool { return false }); err == nil {
			t.Errorf("%s: %+v", words, got)
		}
	}
}

func TestTraceFindsNoWayOut(t *testing.T) {
	for _, words := range []string{
		"^14000000",          // ^b .
		"^d4200000",          // ^brk #0
		"^d503201f",          // ^nop
		"^00000000",          // ^udf #0
		"^cb2163ff d65f03c0", // ^sub sp, sp, x1; ret
		"^94000400 d65f03c0", // ^bl .+0x1000; ret
		"^2a1e03fe d65f03c0", // ^mov w30, w30; ret
		"^f8e1005e d65f03c0", // ^ldaddal x1, x30, [x2]; ret
	} {
		code, pc := assemble(t, words)
		if got, err := CPU.NewTracer(CPU.Java).Trace(code, 0, pc, 0); err == nil {
			t.Errorf("%s: %+v", words, got)
		}
	}
	code, _ := assemble(t, "d65f03c0 d65f03c0")
	for _, pc := range []uint64{0xffc, 0x1001, 0x1002, 0x1008} {
		if _, err := CPU.NewTracer(CPU.Java).Trace(code, 0x1000, pc, 0); err != arch.ErrNoCode {
			t.Errorf("pc %#x: %v", pc, err)
		}
	}
}

func TestSigned(t *testing.T) {
	for _, r := range []struct{ highest, want uint64 }{ // memory of 39 bits, 47, 48, and all of 52 or 55
		{1<<39 - 4096, 0x007fff8000000000},
		{1 << 47, 0x007f800000000000},
		{1<<48 - 1<<16, 0x007f000000000000},
		{1 << 52, 0x0070000000000000},
		{^uint64(0), 0},
	} {
		if got := CPU.Signed(r.highest); got != r.want {
			t.Errorf("memory that ends at %#x: %#x, not %#x", r.highest, got, r.want)
		}
	}
}
