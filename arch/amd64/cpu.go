package amd64

import (
	"debug/elf"
	"encoding/binary"

	"goprof/arch"
)

// DWARF numbers of the amd64 registers (System V ABI, figure 3.36).
const (
	rax = iota
	rdx
	rcx
	rbx
	rsi
	rdi
	rbp
	rsp
	r8
	r9
	r10
	r11
	r12
	r13
	r14
	r15
	rip
)

// CPU is x86-64.
var CPU = arch.NewCPU(arch.Facts{
	Name:    "amd64",
	Machine: elf.EM_X86_64,
	PC:      rip,
	SP:      rsp,
	FP:      rbp,
	LR:      -1,
	RA:      rip,

	SyscallResult: rax,
	FourthArg:     r10,
	DearClock:     "hypervisor",
	PrstatusSize:  len(prstatus) * 8,
	Locals:        locals,
	Perf:          perf,
	Probe:         probe,
	Calls:         calls,

	Java: java,

	AtEntry: arch.Exit{
		RA: arch.MemAt(rsp, 0), SP: arch.RegPlus(rsp, 8),
		FP: arch.RegPlus(rbp, 0),
	},

	CalleeSaved: 1<<rbx | 1<<rbp | 1<<r12 | 1<<r13 | 1<<r14 | 1<<r15,

	// HotSpot cpu/x86/frame_x86.hpp; 8 has no mirror slot.
	Interp: arch.InterpLayouts{
		JDK8: arch.InterpLayout{SenderSP: -1, LastSP: -2, Method: -3, Locals: -6, BCP: -7},
		JDK9: arch.InterpLayout{SenderSP: -1, LastSP: -2, Method: -3, Locals: -7, BCP: -8},
	},
	// HotSpot cpu/x86/stubGenerator_x86_64.cpp, enum call_stub_layout.
	CallStub: arch.CallStubLayout{
		CallWrapper: -6,
		Saved: []arch.Saved{
			{Reg: rbx, Slot: -7}, {Reg: r12, Slot: -8}, {Reg: r13, Slot: -9}, {Reg: r14, Slot: -10}, {Reg: r15, Slot: -11},
		},
	},

	MaxCall:   8,
	MinInst:   1,
	ShortJump: 130, // two bytes and a prefix, and 127

	// The handler has returned to the trampoline. The return has taken the first word of struct rt_sigframe off the
	// stack. A ucontext follows (arch/x86/include/asm/sigframe.h): 40 bytes for flags, link and stack_t, 256 bytes of
	// registers, the signal mask of 8 bytes. Then the siginfo comes.
	SigInfo: 40 + 256 + 8,
}, code{})

// java: HotSpot cpu/x86/register_x86.hpp, interp_masm_x86.hpp, assembler_x86.hpp.
var java = arch.JavaRegs{
	BCP:      r13,
	Method:   rbx,
	SenderSP: r13,
	ThrownAt: rdx,
}

// prstatus is the order of struct user_regs_struct (arch/x86/include/asm/user_64.h). -1 stands for a field that is not
// kept, -2 for the system call's number.
var prstatus = [27]int{
	r15, r14, r13, r12, rbp, rbx, r11, r10,
	r9, r8, rax, rcx, rdx, rsi, rdi, -2,
	rip, -1, -1, rsp, -1, -1, -1, -1, -1, -1, -1,
}

// DecodeRegs is described at arch.Code.
func (code) DecodeRegs(b []byte, r *arch.Regs) (int64, bool) {
	if len(b) < len(prstatus)*8 {
		return -1, false
	}
	syscall := int64(-1)
	for i, reg := range prstatus {
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
