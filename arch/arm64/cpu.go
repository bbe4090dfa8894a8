package arm64

import (
	"debug/elf"
	"encoding/binary"

	"goprof/arch"
)

// DWARF numbers of the arm64 registers (AADWARF64): x0 to x30 are 0 to 30.
const (
	x0    = 0
	x3    = 3
	x8    = 8
	x9    = 9
	x12   = 12
	x13   = 13
	x19   = 19
	x22   = 22
	x28   = 28
	x29   = 29
	x30   = 30
	regSP = 31
	regPC = 32
)

// CPU is aarch64.
var CPU = arch.NewCPU(arch.Facts{
	Name:    "arm64",
	Machine: elf.EM_AARCH64,
	PC:      regPC,
	SP:      regSP,
	FP:      x29,
	LR:      x30,
	RA:      x30,

	ReturnsInRegister: true,
	ConstantsApart:    true,
	FreesHeapBase:     true,

	SyscallResult: x0,
	FourthArg:     x3,
	// svc #0. Before a tracer may look at the thread, the kernel has set the pc back to it (arch/arm64/kernel/signal.c,
	// do_signal).
	SyscallInst:   []byte{0x01, 0x00, 0x00, 0xd4},
	SyscallNumber: x8,
	PrstatusSize:  prstatusWords * 8,
	Locals:        locals,
	Perf:          perf,
	Probe:         probe,
	Signs:         true,
	Calls:         calls,

	// HotSpot cpu/aarch64/assembler_aarch64.hpp, register_aarch64.hpp. Up to JDK 17 the sender's sp is in x13
	// (code.SenderSP).
	Java: arch.JavaRegs{
		BCP:      x22,
		Method:   x12,
		SenderSP: x19,
		ThrownAt: x3,
	},
	SenderSPVaries: true,

	AtEntry: arch.Exit{
		RA: arch.RegPlus(x30, 0), SP: arch.RegPlus(regSP, 0),
		FP: arch.RegPlus(x29, 0),
	},

	CalleeSaved: 1<<(x29+1) - 1<<x19,

	// HotSpot cpu/aarch64/frame_aarch64.hpp; 8 has no mirror slot. Up to 17 or so ExtendedSP holds 0.
	Interp: arch.InterpLayouts{
		JDK8: arch.InterpLayout{SenderSP: -1, LastSP: -2, Method: -3, Locals: -6, BCP: -7, OperandSP: true},
		JDK9: arch.InterpLayout{SenderSP: -1, LastSP: -2, Method: -3, Locals: -8, BCP: -9, OperandSP: true, ExtendedSP: -5},
	},
	// HotSpot cpu/aarch64/stubGenerator_aarch64.cpp, enum call_stub_layout.
	CallStub: arch.CallStubLayout{
		CallWrapper: -8,
		Saved: []arch.Saved{
			{Reg: 19, Slot: -9}, {Reg: 20, Slot: -10}, {Reg: 21, Slot: -11}, {Reg: 22, Slot: -12}, {Reg: 23, Slot: -13},
			{Reg: 24, Slot: -14}, {Reg: 25, Slot: -15}, {Reg: 26, Slot: -16}, {Reg: 27, Slot: -17}, {Reg: 28, Slot: -18},
		},
	},

	MaxCall: 4,
	MinInst: 4,

	// mov x8, #139; svc #0 (arch/arm64/kernel/vdso/sigreturn.S). Its unwind rules describe only the frame pointer and
	// the link register. The stack pointer is at a struct rt_sigframe: a siginfo of 128 bytes, then a ucontext. After
	// 176 bytes of the ucontext its sigcontext begins, which has one word before the registers.
	Sigreturn: []byte{0x68, 0x11, 0x80, 0xd2, 0x01, 0x00, 0x00, 0xd4},
	SigRegs:   128 + 176 + 8,
}, code{})

// prstatusWords: struct user_pt_regs is x0-x30, sp, pc, pstate
// (arch/arm64/include/uapi/asm/ptrace.h). The system call is not among them.
const prstatusWords = 34

// DecodeRegs is described at arch.Code.
func (code) DecodeRegs(b []byte, r *arch.Regs) (int64, bool) {
	if len(b) < prstatusWords*8 {
		return -1, false
	}
	for i := range regPC + 1 {
		r[i] = binary.LittleEndian.Uint64(b[i*8:])
	}
	return -1, true
}
