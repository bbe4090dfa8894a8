package amd64

import "goprof/arch"

// probe: struct pt_regs (arch/x86/include/uapi/asm/ptrace.h) is r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx,
// dx, si, di, orig_ax, ip, cs, flags, sp, ss. The arguments are those of the System V ABI.
var probe = arch.ProbeLayout{
	Offsets: [arch.MaxRegs]int16{
		rax: 80, rdx: 96, rcx: 88, rbx: 40, rsi: 104, rdi: 112, rbp: 32, rsp: 152,
		r8: 72, r9: 64, r10: 56, r11: 48, r12: 24, r13: 16, r14: 8, r15: 0, rip: 128,
	},
	Args: []int8{rdi, rsi, rdx, rcx, r8, r9},
	Nop:  []byte{0x90},
}
