package arch

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
)

// DWARF numbers of the amd64 registers (System V ABI, figure 3.36).
const (
	amd64RAX = iota
	amd64RDX
	amd64RCX
	amd64RBX
	amd64RSI
	amd64RDI
	amd64RBP
	amd64RSP
	amd64R8
	amd64R9
	amd64R10
	amd64R11
	amd64R12
	amd64R13
	amd64R14
	amd64R15
	amd64RIP
)

// AMD64 is x86-64.
var AMD64 = &CPU{
	Name:    "amd64",
	Machine: elf.EM_X86_64,
	PC:      amd64RIP,
	SP:      amd64RSP,
	FP:      amd64RBP,
	LR:      -1,
	RA:      amd64RIP,

	SyscallResult: amd64RAX,
	PrstatusSize:  len(amd64Prstatus) * 8,
	Perf:          &amd64Perf,
	DecodeRegs:    decodeAMD64,
	Calls:         amd64Calls,

	// HotSpot cpu/x86/register_x86.hpp, interp_masm_x86.hpp, assembler_x86.hpp.
	Java: JavaRegs{
		Thread:   amd64R15,
		BCP:      amd64R13,
		Method:   amd64RBX,
		SenderSP: amd64R13,
		ThrownAt: amd64RDX,
	},

	AtEntry: Exit{RA: Loc{AtMem, amd64RSP, 0}, SP: Loc{Value, amd64RSP, 8}, FP: Loc{Value, amd64RBP, 0}},

	CalleeSaved: 1<<amd64RBX | 1<<amd64RBP | 1<<amd64R12 | 1<<amd64R13 | 1<<amd64R14 | 1<<amd64R15,

	NewTracer:  func(JavaRegs) Tracer { return new(amd64Tracer) },
	AfterLeave: afterLeaveAMD64,
	Enters:     entersAMD64,
	EndsInCall: endsInCallAMD64,
	MaxCall:    8,
	Read:       readAMD64,
	MinInst:    1,
	Trampoline: trampolineAMD64,
	ThreadSlot: threadSlotAMD64,
}

// amd64Prstatus is the order of struct user_regs_struct (arch/x86/include/asm/user_64.h);
// -1 is a field that we do not keep, -2 the system call's number.
var amd64Prstatus = [27]int{
	amd64R15, amd64R14, amd64R13, amd64R12, amd64RBP, amd64RBX, amd64R11, amd64R10,
	amd64R9, amd64R8, amd64RAX, amd64RCX, amd64RDX, amd64RSI, amd64RDI, -2,
	amd64RIP, -1, -1, amd64RSP, -1, -1, -1, -1, -1, -1, -1,
}

func decodeAMD64(b []byte, r *Regs) (int64, bool) {
	if len(b) < len(amd64Prstatus)*8 {
		return -1, false
	}
	syscall := int64(-1)
	for i, reg := range amd64Prstatus {
		v := binary.LittleEndian.Uint64(b[i*8:])
		switch {
		case reg >= 0:
			r[reg] = v
		case reg == -2:
			syscall = int64(v)
		}
	}
	return syscall, true
}

// afterLeaveAMD64 looks for LEAVE (0xc9).
func afterLeaveAMD64(code []byte, off uint64) bool {
	off = min(off, uint64(len(code)))
	return bytes.IndexByte(code[off-min(off, maxAfterLeave):off], 0xc9) >= 0
}

// entersAMD64 looks for PUSH rbp; MOV rbp, rsp in either encoding.
func entersAMD64(code []byte) int {
	if bytes.HasPrefix(code, []byte{0x55, 0x48, 0x8b, 0xec}) || bytes.HasPrefix(code, []byte{0x55, 0x48, 0x89, 0xe5}) {
		return 4
	}
	return 0
}

// endsInCallAMD64 looks for CALL rel32 (e8), or CALL r/m (ff /2) with any operand.
func endsInCallAMD64(code []byte) bool {
	n := len(code)
	if n >= 5 && code[n-5] == 0xe8 {
		return true
	}
	var in x86Inst
	for i := max(0, n-8); i < n-1; i++ {
		if decodeX86(code[i:], &in) && in.Len == n-i && in.Map == 0 && in.Op == 0xff && in.OpX == 2 {
			return true
		}
	}
	return false
}

func init() {
	// HotSpot cpu/x86/frame_x86.hpp; 8 has no mirror slot.
	AMD64.Interp.JDK8 = InterpLayout{SenderSP: -1, LastSP: -2, Method: -3, Locals: -6, BCP: -7}
	AMD64.Interp.JDK9 = InterpLayout{SenderSP: -1, LastSP: -2, Method: -3, Locals: -7, BCP: -8}
	// HotSpot cpu/x86/stubGenerator_x86_64.cpp, enum call_stub_layout.
	AMD64.CallStub = CallStubLayout{
		CallWrapper: -6,
		Saved: []Saved{
			{amd64RBX, -7}, {amd64R12, -8}, {amd64R13, -9}, {amd64R14, -10}, {amd64R15, -11},
		},
	}
}
