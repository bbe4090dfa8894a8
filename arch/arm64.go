package arch

import (
	"debug/elf"
	"encoding/binary"
)

// DWARF numbers of the arm64 registers (AADWARF64): x0 to x30 are 0 to 30.
const (
	arm64X0  = 0
	arm64X12 = 12
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
	PrstatusSize:  arm64PrstatusWords * 8,
	DecodeRegs:    decodeARM64,

	// HotSpot cpu/aarch64/assembler_aarch64.hpp.
	Java: JavaRegs{
		Thread:   arm64X28,
		BCP:      arm64X22,
		Method:   arm64X12,
		SenderSP: arm64X19,
	},

	CalleeSaved: 1<<(arm64X29+1) - 1<<arm64X19,

	AfterLeave:   func(code []byte, off uint64) bool { return false },
	Enters:       entersARM64,
	EndsInCall:   endsInCallARM64,
	MaxCall:      4,
	CanonicalTop: 1 << 52,
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

// entersARM64 looks for STP x29, x30, [sp, #-16]!; MOV x29, sp.
func entersARM64(code []byte) int {
	if len(code) >= 8 && binary.LittleEndian.Uint32(code) == 0xa9bf7bfd && binary.LittleEndian.Uint32(code[4:]) == 0x910003fd {
		return 8
	}
	return 0
}

// endsInCallARM64 looks for BL and BLR.
func endsInCallARM64(code []byte) bool {
	if len(code) < 4 {
		return false
	}
	op := binary.LittleEndian.Uint32(code[len(code)-4:])
	return op>>26 == 0x25 || op&0xfffffc1f == 0xd63f0000
}

func init() {
	// HotSpot cpu/aarch64/frame_aarch64.hpp; 8 has no mirror slot.
	ARM64.Interp.JDK8 = InterpLayout{SenderSP: -1, LastSP: -2, Method: -3, Locals: -6, BCP: -7}
	ARM64.Interp.JDK9 = InterpLayout{SenderSP: -1, LastSP: -2, Method: -3, Locals: -8, BCP: -9}
	// HotSpot cpu/aarch64/stubGenerator_aarch64.cpp, enum call_stub_layout.
	ARM64.CallStub = CallStubLayout{
		CallWrapper: -8,
		Saved: []Saved{
			{20, -9}, {19, -10}, {22, -11}, {21, -12}, {24, -13}, {23, -14},
			{26, -15}, {25, -16}, {28, -17}, {27, -18},
		},
	}
}
