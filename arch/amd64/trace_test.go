package amd64

import (
	"encoding/hex"
	"strings"
	"testing"

	"goprof/arch"
)

func mem(reg int, off int32) arch.Loc { return arch.MemAt(uint8(reg), off) }
func val(reg int, off int32) arch.Loc { return arch.RegPlus(uint8(reg), off) }

func newTracer() arch.Tracer { return CPU.NewTracer(CPU.Java) }

// Each row is one place in code as HotSpot makes it. The caret marks the pc.
func TestTrace(t *testing.T) {
	const sp, fp = rsp, rbp
	// C2, JDK 17: bang; push rbp; sub rsp,0x20; nop; call; add rsp,0x20; pop rbp;
	// cmp rsp,[r15+0x28]; ja poll stub; ret; poll stub: lea r10; mov [r15+..],r10; jmp out
	c2 := func(parts ...string) string { return strings.Join(parts, " ") }
	body := []string{"89842400c0feff", "55", "4883ec20", "90", "e8ff000000", "4883c420", "5d", "493b6728", "0f8701000000",
		"c3",
		"4c8d15e8ffffff", "4d8997d0030000", "e900100000"}
	at := func(n int) string {
		p := append([]string(nil), body...)
		p[n] = "^" + p[n]
		return c2(p...)
	}
	rows := []struct {
		name string
		code string
		want arch.Exit
	}{
		{"C2 entry, before the frame", at(0), arch.Exit{RA: mem(sp, 0), SP: val(sp, 8), FP: val(fp, 0)}},
		{"C2 after push rbp", at(2), arch.Exit{RA: mem(sp, 8), SP: val(sp, 16), FP: mem(sp, 0)}},
		{"C2 body", at(3), arch.Exit{RA: mem(sp, 0x28), SP: val(sp, 0x30), FP: mem(sp, 0x20)}},
		{"C2 before the epilogue", at(5), arch.Exit{RA: mem(sp, 0x28), SP: val(sp, 0x30), FP: mem(sp, 0x20)}},
		{"C2 before pop rbp", at(6), arch.Exit{RA: mem(sp, 8), SP: val(sp, 16), FP: mem(sp, 0)}},
		{"C2 at the return poll", at(7), arch.Exit{RA: mem(sp, 0), SP: val(sp, 8), FP: val(fp, 0)}},
		{"C2 after the poll's compare", at(8), arch.Exit{RA: mem(sp, 0), SP: val(sp, 8), FP: val(fp, 0)}},
		{"C2 at ret", at(9), arch.Exit{RA: mem(sp, 0), SP: val(sp, 8), FP: val(fp, 0)}},
		{"C2 in the poll's stub", at(10), arch.Exit{RA: mem(sp, 0), SP: val(sp, 8), FP: val(fp, 0), Jump: true}},
		{"C2 without bang, between sub and the store of rbp",
			"4881ec18000000 ^48896c2410 90 4883c410 5d c3", arch.Exit{RA: mem(sp, 0x18), SP: val(sp, 0x20), FP: val(fp, 0)}},
		{"C2 without bang, after the store",
			"4881ec18000000 48896c2410 ^90 4883c410 5d c3", arch.Exit{RA: mem(sp, 0x18), SP: val(sp, 0x20), FP: mem(sp, 0x10)}},
		{"C1 between the pushed arguments of a slow path stub",
			"55 4883ec30 50 ^51 e8ff000000 59 58 4883c430 5d c3",
			arch.Exit{RA: mem(sp, 0x40), SP: val(sp, 0x48), FP: mem(sp, 0x38)}},
		{"stub with enter and leave, stack pointer of unknown origin",
			"55 488bec 4883e4f0 ^90 c9 c3", arch.Exit{RA: mem(fp, 8), SP: val(fp, 16), FP: mem(fp, 0)}},
		{"stub that saves and restores all registers, its frame pointer too",
			"^488b6c2450 4881c480000000 c9 c3", arch.Exit{RA: mem(arch.SavedSP, 8), SP: val(arch.SavedSP, 16),
				FP: mem(arch.SavedSP, 0), Saved: mem(sp, 0x50)}},
		{"sha512_AVX2: stack pointer saved below an aligned one, frame pointer used for a table",
			"^48ffc5 488b6c2440 488b642438 5a 59 c9 c3",
			arch.Exit{RA: mem(arch.SavedSP, 8), SP: val(arch.SavedSP, 16), FP: mem(arch.SavedSP, 0), Saved: mem(sp, 0x40)}},
		{"a slow path jumps out directly, the regular way indirectly",
			"^7405 e900100000 58 4989e5 ff6140", arch.Exit{RA: mem(sp, 8), SP: val(sp, 16), FP: val(fp, 0), Jump: true,
				Indirect: true, Through: mem(rcx, 0x40), SenderSP: val(sp, 8)}},
		{"c2i on its way back from the VM, the stack pointer kept in r13",
			"^4c8b6c2410 4981c4900b0000 9d 498be5 58 4c8bec 4883ec20 48890424 ff6338",
			arch.Exit{RA: mem(arch.SavedSP, 0), SP: val(arch.SavedSP, -16), FP: val(fp, 0), Saved: mem(sp, 0x10), Jump: true,
				Indirect: true, Through: mem(rbx, 0x38), SenderSP: val(arch.SavedSP, 8)}},
		{"exception stub that is about to patch its return address",
			"^48895508 e8ff000000 48894508 c9 c3", arch.Exit{RA: mem(fp, 8), SP: val(fp, 16), FP: mem(fp, 0)}},
		{"loop before the way out",
			"^48ffc9 75fb c3", arch.Exit{RA: mem(sp, 0), SP: val(sp, 8), FP: val(fp, 0)}},
		{"a return that pops arguments", "^c20002", arch.Exit{RA: mem(sp, 0), SP: val(sp, 0x208), FP: val(fp, 0)}},
		{"the frame pointer's register used by BMI", "^c4e268f5e9 c3", arch.Exit{RA: mem(sp, 0), SP: val(sp, 8)}},
		{"a saved frame pointer overwritten by a constant", "^55 48c7042400000000 5d c3",
			arch.Exit{RA: mem(sp, 0), SP: val(sp, 8)}},
		{"the address of a half is no address", "^8d6c2408 c3", arch.Exit{RA: mem(sp, 0), SP: val(sp, 8)}},
		{"a trap on the first way, another way returns",
			"^7402 0f0b 58 c3", arch.Exit{RA: mem(sp, 8), SP: val(sp, 16), FP: val(fp, 0)}},
		{"AVX-512 and VEX in between",
			"^62f17c48104424 01 c5f877 c4e37d39c101 c3", arch.Exit{RA: mem(sp, 0), SP: val(sp, 8), FP: val(fp, 0)}},
		{"i2c: return address copied over an aligned stack",
			"^488b0424 4c8bdc 4883ec18 4883e4f0 50 ff6348",
			arch.Exit{RA: mem(sp, 0), SP: val(sp, -24), FP: val(fp, 0), Jump: true, Indirect: true,
				Through: mem(rbx, 0x48)}},
		{"c2i: return address in a register",
			"4c8d6c2408 58 ^4883ec10 50 4889742408 ff6360",
			arch.Exit{RA: val(rax, 0), SP: val(sp, -16), FP: val(fp, 0), Jump: true, Indirect: true,
				Through: mem(rbx, 0x60), SenderSP: val(r13, 0)}},
		// templateInterpreterGenerator_x86.cpp, generate_throw_exception, as in JDK 17: the frame is gone, the code
		// calls the VM for the handler, and rdx is kept.
		{"an exception leaves an interpreted method: before the VM is asked",
			"c9 5a 488be3 ^498b87e8020000 50 52 488bf2 498bff f7c40f000000 0f8412000000 4883ec08 e8a40ada14 4883c408 " +
				"e905000000 e8960ada14 488bd8 5a 58 ffe3",
			arch.Exit{RA: mem(sp, 0), SP: val(sp, 8), FP: val(fp, 0), ThrownAt: val(rdx, 0), Jump: true, Indirect: true}},
		{"an exception leaves an interpreted method: in the VM",
			"50 52 488bf2 498bff f7c40f000000 0f8412000000 4883ec08 e8a40ada14 ^4883c408 e905000000 e8960ada14 488bd8 5a 58 ffe3",
			arch.Exit{RA: mem(sp, 24), SP: val(sp, 32), FP: val(fp, 0), Target: val(rax, 0), ThrownAt: mem(sp, 8), Jump: true,
				Indirect: true}},
		{"an exception leaves an interpreted method: with the handler's address",
			"e8960ada14 488bd8 5a ^58 ffe3",
			arch.Exit{RA: mem(sp, 8), SP: val(sp, 16), FP: val(fp, 0), Target: val(rbx, 0), ThrownAt: val(rdx, 0), Jump: true,
				Indirect: true}},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			code, pc := assemble(t, r.code)
			got, err := newTracer().Trace(code, 0x1000, 0x1000+pc, 0)
			if err != nil {
				t.Fatal(err)
			}
			got.BCP = arch.Loc{} // on amd64, the same register as SenderSP
			if r.want.SenderSP.Kind == arch.Unknown {
				got.SenderSP = arch.Loc{}
			}
			// these have tests of their own
			got.Taken, got.End, got.Calls, got.WritesRA = arch.Loc{}, arch.Loc{}, false, false
			if got != r.want {
				t.Errorf("got  %+v\nwant %+v", got, r.want)
			}
		})
	}
}

// A long method: its return is far away, and the end of its prologue is near.
func TestTracePrologue(t *testing.T) {
	const sp, fp, size = rsp, rbp, 0x30
	rows := []struct {
		name, code string
		want       arch.Exit
	}{
		{"before push", "^55 4883ec20 ebfe", arch.Exit{RA: mem(sp, 0), SP: val(sp, 8), FP: val(fp, 0), FrameBuilt: true}},
		{"after push", "55 ^4883ec20 ebfe", arch.Exit{RA: mem(sp, 8), SP: val(sp, 16), FP: mem(sp, 0), FrameBuilt: true}},
		{"sub first", "^4881ec28000000 48896c2420 ebfe",
			arch.Exit{RA: mem(sp, 0), SP: val(sp, 8), FP: val(fp, 0), FrameBuilt: true}},
		{"after push, the frame pointer kept", "55 ^488bec 4883ec20 ebfe",
			arch.Exit{RA: mem(sp, 8), SP: val(sp, 16), FP: mem(sp, 0), FrameBuilt: true}},
		{"whole, before an intrinsic that makes as much room (TestIntrinsics, one stop in 100,000)",
			"55 4883ec20 ^41817f2001000000 488bcc 4883ec20 488be1 4883c420 5d c3",
			arch.Exit{RA: mem(sp, 0x28), SP: val(sp, 0x30), FP: mem(sp, 0x20)}},
	}
	for _, r := range rows {
		code, pc := assemble(t, r.code)
		got, err := newTracer().Trace(code, 0, pc, size)
		got.Taken, got.End, got.SenderSP, got.BCP = arch.Loc{}, arch.Loc{}, arch.Loc{}, arch.Loc{}
		if err != nil || got != r.want {
			t.Errorf("%s: got %+v, %v\nwant %+v", r.name, got, err, r.want)
		}
	}
	// A frame of two words. Before the push, no word may be taken for the one behind the frame.
	code, pc := assemble(t, "^89842400c0feff 55 90 5d c3")
	if got, err := newTracer().Trace(code, 0, pc, 16); err != nil || got.RA != mem(sp, 0) || got.FP != val(fp, 0) {
		t.Errorf("a small frame, before push: %+v, %v", got, err)
	}
	code, pc = assemble(t, "89842400c0feff 55 ^90 5d c3")
	if got, err := newTracer().Trace(code, 0, pc, 16); err != nil || got.RA != mem(sp, 8) || got.FP != mem(sp, 0) {
		t.Errorf("a small frame, after push: %+v, %v", got, err)
	}
	code, pc = assemble(t, "55 4883ec20 ^e8ff000000 4883ec20 ebfe")
	if got, err := newTracer().Trace(code, 0, pc, size); err == nil {
		t.Errorf("after a call: %+v", got)
	}
}

// C2's string_indexof (c2_MacroAssembler_x86.cpp), as JDK 17 makes it for a needle of unknown length, in a frame of
// 0x30 bytes. The caret marks where the old stack pointer is in rcx. The bar marks where it is on the stack. There
// may be 0, 16 or 32 bytes between the old stack pointer and the new one.
const stringIndexOf = "488bcc ^83f808 7356 8bde 81e3ff0f0000 81fbf00f0000 7617 4883ec10 50 0fb65c06ff 885c0407 " +
	"48ffc8 75f2 58" +
	"488bf4 83fa08 732a 8bdf 81e3ff0f0000 81fbf00f0000 761a 4883ec10 50 8bc2 0fb75c47fe 66895c4406 48ffc8 75f1 58 488bfc" +
	"c4e2793026 50 56 57 51 |488bdf eb23 488b742410 8b442418 c4e2793026 482bfb d1ef 03d7 ffca 3bd0 0f8830000000 4883c302" +
	"c4e37961230d 721e 83ea08 7e1f 3bd0 781b 4883c310 83fa08 7de6 488d5c53f0 ba08000000 ebda 2bd1 3bd0 7d0a bbffffffff" +
	"e95d000000 488d1c4b 03c8 83f908 0f8e49000000 83f808 7ecb 488bfb 3bc8 7408 c4e37961270d 7184 83e808 7e2b 4883c710 " +
	"4883c608" +
	"83ea08 83f808 7d14 488d7406f8 488d7c47f0 2bd0 b808000000 83c208 c4e2793026 ebc8 488b7c2408 482bdf d1eb 5c"

func TestTraceStringIndexOf(t *testing.T) {
	before, onStack, _ := strings.Cut(stringIndexOf, "|")
	code, inRCX := assemble(t, before)
	pushed := uint64(len(code))
	rest, _ := assemble(t, onStack)
	code = append(code, rest...)
	end := uint64(len(code))
	epilogue, _ := assemble(t, "4883c420 5d c3")
	code = append(code, epilogue...)
	var in inst
	steps := 0
	for pc := uint64(0); pc < end; pc += uint64(in.Len) {
		if !decode(code[pc:], &in) {
			t.Fatalf("no instruction at %#x", pc)
		}
		base, saved := rsp, arch.Loc{}
		if pc >= inRCX {
			base = rcx
		}
		if pc >= pushed {
			base, saved = arch.SavedSP, mem(rsp, 0)
		}
		got, err := newTracer().Trace(code, 0, pc, 0)
		got.Taken, got.End, got.SenderSP, got.BCP = arch.Loc{}, arch.Loc{}, arch.Loc{}, arch.Loc{}
		want := arch.Exit{RA: mem(base, 0x28), SP: val(base, 0x30), FP: mem(base, 0x20), Saved: saved}
		if err != nil || got != want {
			t.Errorf("at %#x: got %+v, %v\nwant %+v", pc, got, err, want)
		}
		steps++
	}
	if steps != 93 { // the number that objdump counts
		t.Errorf("%d instructions", steps)
	}
}

// A poll leads a thread to this stub, which is shortened: it saves few registers. It makes room for its return
// address, fills that in before the call, and moves it past the poll afterwards.
func TestTraceHandlerBlob(t *testing.T) {
	const restore = "488b6c2450 488b5c2460 4881c480000000 4883c408 9d 5d"
	code, _ := assemble(t, "53 55 488bec 9c 4883ec08 4881ec80000000 48895c2460 48896c2450 498b9f58030000 48895d08 "+
		"498bff e800100000"+
		"49837f0800 741c"+restore+"e900100000 483b5d08 7508 4883c302 48895d08"+restore+"c3")
	const afterCall, unwinds, returns, moved = 0x2e, 0x35, 0x51, 0x5f
	// sizes are the bytes on the stack, before registers are saved
	sizes := map[uint64]int32{0: 0, 1: 8, 2: 16, 5: 16, 6: 24, 0xa: 32, 0x11: 0xa0}
	var in inst
	for pc := uint64(0); pc < uint64(len(code)); pc += uint64(in.Len) {
		if !decode(code[pc:], &in) {
			t.Fatalf("no instruction at %#x", pc)
		}
		got, err := newTracer().Trace(code, 0, pc, 0)
		if err != nil || got.SP.Kind != arch.Value || got.SP.Reg != rsp {
			t.Fatalf("at %#x: %+v %v", pc, got, err)
		}
		if size, ok := sizes[pc]; ok && got.SP.Off != size {
			t.Errorf("at %#x: %+v, want %#x bytes", pc, got, size)
		}
		inUnwind := pc >= unwinds && pc < returns
		if writes := pc < moved && !inUnwind; got.Jump != inUnwind || got.WritesRA != writes ||
			got.Calls != (pc < afterCall) {
			t.Errorf("at %#x: %+v", pc, got)
		}
		if pc >= moved && got.RA != mem(rsp, got.SP.Off-8) {
			t.Errorf("at %#x: %+v", pc, got)
		}
	}
}

func TestTracePopped(t *testing.T) {
	rows := []struct {
		name, code string
		want       arch.Loc
	}{
		// C1's unwind_exception: the return address is popped after the call. The call has returned the handler's
		// address.
		{"popped", "^e8ff000000 488bc8 5a ffe1", mem(rsp, 0)},
		// C2's ExceptionBlob: the exception's pc is pushed in the place of a return address.
		{"pushed and popped", "^52 4883ec08 4883e4f0 e8ff000000 4883c408 5a 4c8bc0 41ffe0", val(rdx, 0)},
		// C1's handle_exception_from_callee, after its leave.
		{"to be jumped to", "c9 ^59 ffe1", mem(rsp, 0)},
		{"in its register", "c9 59 ^ffe1", val(rcx, 0)},
	}
	for _, r := range rows {
		code, pc := assemble(t, r.code)
		got, err := newTracer().Trace(code, 0, pc, 0)
		if err != nil || !got.Indirect || got.Taken != r.want && got.Target != r.want {
			t.Errorf("%s: %+v %v", r.name, got, err)
		}
	}
}

func TestTraceEntry(t *testing.T) {
	// generate_normal_entry: pop rax; lea r14; push 0; push rax; push rbp; mov rbp,rsp; push r13
	const code = "^58 4d8d742418 6a00 50 55 488bec 4155 6a00 ffe3"
	b, pc := assemble(t, code)
	got, err := newTracer().TraceEntry(b, 0, pc)
	if err != nil || !got.FrameBuilt || got.RA != mem(rsp, 0) || got.FP != val(rbp, 0) || got.SenderSP != val(r13, 0) {
		t.Errorf("before pop: %+v %v", got, err)
	}
	got, err = newTracer().TraceEntry(b, 0, 1)
	if err != nil || !got.FrameBuilt || got.RA != val(rax, 0) {
		t.Errorf("return address in rax: %+v %v", got, err)
	}
	got, err = newTracer().TraceEntry(b, 0, uint64(len(b)-6))
	if err != nil || got.FrameBuilt {
		t.Errorf("after the frame is built: %+v %v", got, err)
	}
}

// Code without a way out is followed to where its frame is known to be whole. The bar marks a record of the debug
// information.
func TestTraceTo(t *testing.T) {
	const sp, fp, size = rsp, rbp, 0x30
	whole := arch.Exit{RA: mem(sp, 0x28), SP: val(sp, 0x30), FP: mem(sp, 0x20), FrameBuilt: true}
	pushed := arch.Exit{RA: mem(sp, 0x38), SP: val(sp, 0x40), FP: mem(sp, 0x30), FrameBuilt: true}
	calls := func(e arch.Exit) arch.Exit { e.Calls = true; return e }
	rows := []struct {
		name, code string
		want       arch.Exit
	}{
		{"an endless loop with a poll", "^48ffc0 |4585d8 ebf8", whole},
		{"an uncommon trap is the last instruction", "^48ffc0 e8ff000000|", calls(whole)},
		{"arguments of a leaf call are pushed", "50 51 ^e8ff000000 59 58 e8ff000000| 0f0b", calls(pushed)},
		{"before the frame is made", "^55 4883ec20 e8ff000000| 0f0b",
			calls(arch.Exit{RA: mem(sp, 0), SP: val(sp, 8), FP: val(fp, 0), FrameBuilt: true})},
		{"a switch through a table", "^4983fa04 4c8d1d00000000 43ff24d3", whole},
		{"the way to the return has no record, the other one has", "^7406 4883c420 5d c3 48ffc0 |90", whole},
	}
	for _, r := range rows {
		before, after, _ := strings.Cut(r.code, "|")
		code, pc := assemble(t, before)
		record := uint64(len(code))
		rest, _ := assemble(t, after)
		whole := func(pc uint64) bool { return pc == 0x1000+record && strings.Contains(r.code, "|") }
		got, err := newTracer().TraceTo(append(code, rest...), 0x1000, 0x1000+pc, size, whole)
		if err != nil || got != r.want {
			t.Errorf("%s: got %+v, %v\nwant %+v", r.name, got, err, r.want)
		}
	}
	for _, code := range []string{"^90 c3", "^ebfe", "^e900100000", "^4883e4f0 0f0b", "^4829c4 ffe0"} {
		b, pc := assemble(t, code)
		if got, err := newTracer().TraceTo(b, 0, pc, size, func(uint64) bool { return false }); err == nil {
			t.Errorf("%s: %+v", code, got)
		}
	}
}

func TestTraceFindsNoWayOut(t *testing.T) {
	for _, code := range []string{
		"^ebfe", "^0f0b", "^90", "^4c03e1 0f0b",
		"^d5084889d8 c3",           // REX2 (APX): mov r16.., and whatever else it may be
		"^62f4fc1801c3 c3",         // EVEX map 4 (APX): a general instruction with a new destination
		"^48664889d8 c3",           // REX before another prefix
		"^c4e0f990c0 c3",           // VEX has no map 0
		"^c8100000 c3",             // enter
		"^4894 c3", "48 ^94 5c c3", // xchg rsp, rax; and with eax
		"^8d642408 c3",           // lea esp
		"^0f01f8 480fc8 0fcc c3", // bswap esp
	} {
		b, pc := assemble(t, code)
		if got, err := newTracer().Trace(b, 0, pc, 0); err == nil {
			t.Errorf("%s: %+v", code, got)
		}
	}
	if _, err := newTracer().Trace([]byte{0xc3}, 0x1000, 0x1001, 0); err != arch.ErrNoCode {
		t.Error("pc outside the code:", err)
	}
}

// assemble turns hex into code; ^ marks the pc.
func assemble(t *testing.T, s string) (code []byte, pc uint64) {
	t.Helper()
	s = strings.ReplaceAll(s, " ", "")
	before, after, _ := strings.Cut(s, "^")
	pc = uint64(len(before) / 2)
	code, err := hex.DecodeString(before + after)
	if err != nil {
		t.Fatal(err)
	}
	return code, pc
}

func BenchmarkTrace(b *testing.B) {
	code, _ := hex.DecodeString(strings.Repeat("4889d8", 200) + "4883c4205dc3")
	tr := newTracer()
	for b.Loop() {
		tr.Trace(code, 0, 0, 0)
	}
}

// TestTraceAfterManySpills: code spills more registers than a Tracer remembers. Then a return address is moved to a
// place of which the Tracer remembers an older value. Shenandoah's barrier does that in adapters.
func TestTraceAfterManySpills(t *testing.T) {
	code := []byte{0x50, 0x48, 0x81, 0xec, 0, 4, 0, 0} // push rax; sub rsp, 0x400
	for i := range arch.MaxSlots - 1 {
		code = append(code, 0x48, 0x89, 0x8c, 0x24, byte(8*i), byte(8*i>>8), 0, 0) // mov [rsp+8*i], rcx
	}
	code = append(code,
		0x48, 0x81, 0xc4, 0, 4, 0, 0, 0x58, // add rsp, 0x400; pop rax
		0x58, 0x48, 0x83, 0xec, 0x08, 0x50, // pop rax; sub rsp, 8; push rax: one word lower
		0x48, 0x89, 0x4c, 0x24, 0x08, // mov [rsp+8], rcx
		0xff, 0xe1) // jmp rcx
	exit, err := CPU.NewTracer(CPU.Java).Trace(code, 0x1000, 0x1000, 0)
	if want := (arch.MemAt(rsp, 0)); err != nil || !exit.Jump || exit.RA != want {
		t.Errorf("%+v, %v", exit, err)
	}
}
