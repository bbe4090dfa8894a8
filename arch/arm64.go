package arch

import (
	"debug/elf"
	"encoding/binary"
	"math/bits"
)

// DWARF numbers of the arm64 registers (AADWARF64): x0 to x30 are 0 to 30.
const (
	arm64X0  = 0
	arm64X3  = 3
	arm64X8  = 8
	arm64X9  = 9
	arm64X12 = 12
	arm64X13 = 13
	arm64X19 = 19
	arm64X22 = 22
	arm64X28 = 28
	arm64X29 = 29
	arm64X30 = 30
	arm64SP  = 31
	arm64PC  = 32
)

// ARM64 is aarch64.
var ARM64 = &CPU{
	Name:    "arm64",
	Machine: elf.EM_AARCH64,
	PC:      arm64PC,
	SP:      arm64SP,
	FP:      arm64X29,
	LR:      arm64X30,
	RA:      arm64X30,

	SyscallResult: arm64X0,
	// svc #0. Before it lets a tracer look, the kernel prepares to call again (arch/arm64/kernel/signal.c, do_signal).
	SyscallInst:   []byte{0x01, 0x00, 0x00, 0xd4},
	SyscallNumber: arm64X8,
	PrstatusSize:  arm64PrstatusWords * 8,
	Perf:          &arm64Perf,
	Signed:        signedARM64,
	DecodeRegs:    decodeARM64,
	Calls:         arm64Calls,

	// HotSpot cpu/aarch64/assembler_aarch64.hpp, register_aarch64.hpp. The sender's sp was in x13
	// before (senderSPARM64).
	Java: JavaRegs{
		Thread:   arm64X28,
		BCP:      arm64X22,
		Method:   arm64X12,
		SenderSP: arm64X19,
		ThrownAt: arm64X3,
	},

	AtEntry: Exit{RA: Loc{Value, arm64X30, 0}, SP: Loc{Value, arm64SP, 0}, FP: Loc{Value, arm64X29, 0}},

	CalleeSaved: 1<<(arm64X29+1) - 1<<arm64X19,

	SenderSP:   senderSPARM64,
	LinkerStub: linkerStubARM64,
	Detour:     detourARM64,
	NewTracer:  func(java JavaRegs) Tracer { return &arm64Tracer{java: java} },
	AfterLeave: afterLeaveARM64,
	Enters:     entersARM64,
	EndsInCall: endsInCallARM64,
	MaxCall:    4,
	Read:       readARM64,
	MinInst:    4,
	Pops:       popsARM64,
	Trampoline: trampolineARM64,
	ThreadSlot: threadSlotARM64,

	// mov x8, #139; svc #0 (arch/arm64/kernel/vdso/sigreturn.S). Its unwind rules tell the frame pointer
	// and the link register only. The stack pointer is at a struct rt_sigframe: a siginfo of 128 bytes, a
	// ucontext whose sigcontext comes after 176, and in that the registers after one word.
	Sigreturn: []byte{0x68, 0x11, 0x80, 0xd2, 0x01, 0x00, 0x00, 0xd4},
	SigRegs:   128 + 176 + 8,
}

// arm64PrstatusWords: struct user_pt_regs is x0-x30, sp, pc, pstate
// (arch/arm64/include/uapi/asm/ptrace.h). The system call is not among them.
const arm64PrstatusWords = 34

func decodeARM64(b []byte, r *Regs) (int64, bool) {
	if len(b) < arm64PrstatusWords*8 {
		return -1, false
	}
	for i := range arm64PC + 1 {
		r[i] = binary.LittleEndian.Uint64(b[i*8:])
	}
	return -1, true
}

// signedARM64: a signature lies between the address's bits and bit 55
// (Documentation/arch/arm64/pointer-authentication.rst). How many an address has is the kernel's choice, 36 to 52
// (arch/arm64/memory.rst); a program's stack stands at the end of the first 48 of them, where there are more.
func signedARM64(highest uint64) uint64 { return 1<<55 - 1<<min(max(bits.Len64(highest-1), 36), 55) }

// senderSPARM64 reads the call stub's last two instructions: mov x19, sp; blr (cpu/aarch64/stubGenerator_aarch64.cpp,
// generate_call_stub). JDK 8 to 17 have x13 there.
func senderSPARM64(code []byte) (int, bool) {
	var in a64Inst
	ok := decodeA64(code, &in) && in.Op == a64Add && in.Rn == arm64SP && in.Imm == 0 && in.Rd < arm64X30
	return int(in.Rd), ok && endsInCallARM64(code)
}

// maxAfterLeaveARM64 is maxAfterLeave for this CPU.
const maxAfterLeaveARM64 = 192

// afterLeaveARM64 looks for MOV sp, x29 in the instructions that were executed just before.
func afterLeaveARM64(code []byte, off uint64) bool {
	off = min(off, uint64(len(code))) &^ 3
	var in a64Inst
	for at := off; at >= 4 && off-at < maxAfterLeaveARM64; at -= 4 {
		if binary.LittleEndian.Uint32(code[at-4:]) == 0x910003bf {
			return true
		}
		if !decodeA64(code[at-4:], &in) || in.Op == a64Branch || in.Op == a64Jump || in.Op == a64Ret || in.Op == a64Trap {
			return false // what stands here was come to by another way
		}
	}
	return false
}

// entersARM64 looks for STP x29, x30, [sp, #-16]!; MOV x29, sp, behind one or two instructions that sign x30 or make it
// plain.
func entersARM64(code []byte) int {
	n := 0
	for len(code)-n >= 12 && n < 8 && signsARM64(binary.LittleEndian.Uint32(code[n:])) {
		n += 4
	}
	if len(code)-n >= 8 && binary.LittleEndian.Uint32(code[n:]) == 0xa9bf7bfd && binary.LittleEndian.Uint32(code[n+4:]) == 0x910003fd {
		return n + 8
	}
	return 0
}

// signsARM64 knows XPACLRI, PACIASP, and HotSpot's own PACIAZ or, up to 19, PACIA x30, x29
// (cpu/aarch64/macroAssembler_aarch64.cpp, protect_return_address).
func signsARM64(w uint32) bool {
	return w == 0xd50320ff || w == 0xd503233f || w == 0xd503231f || w == 0xdac103be
}

// endsInCallARM64 looks for BL and BLR, and for those of BLR that check a signature.
func endsInCallARM64(code []byte) bool {
	if len(code) < 4 {
		return false
	}
	op := binary.LittleEndian.Uint32(code[len(code)-4:])
	return op>>26 == 0x25 || op&0xfffffc1f == 0xd63f0000 || op&0xfefff800 == 0xd63f0800
}

// popsARM64 looks for ADD sp, sp, #16. Around calls of C there is such a crumb, the return address once more
// (cpu/aarch64/aarch64.ad, aarch64_enc_java_to_runtime).
func popsARM64(code []byte) uint64 {
	if len(code) >= 4 && binary.LittleEndian.Uint32(code) == 0x910043ff {
		return 16
	}
	return 0
}

func init() {
	// HotSpot cpu/aarch64/frame_aarch64.hpp; 8 has no mirror slot. Up to 17 or so ExtendedSP holds 0.
	ARM64.Interp.JDK8 = InterpLayout{SenderSP: -1, LastSP: -2, Method: -3, Locals: -6, BCP: -7, Operands: true}
	ARM64.Interp.JDK9 = InterpLayout{SenderSP: -1, LastSP: -2, Method: -3, Locals: -8, BCP: -9, Operands: true, ExtendedSP: -5}
	// HotSpot cpu/aarch64/stubGenerator_aarch64.cpp, enum call_stub_layout.
	ARM64.CallStub = CallStubLayout{
		CallWrapper: -8,
		Saved: []Saved{
			{19, -9}, {20, -10}, {21, -11}, {22, -12}, {23, -13}, {24, -14},
			{25, -15}, {26, -16}, {27, -17}, {28, -18},
		},
	}
}
