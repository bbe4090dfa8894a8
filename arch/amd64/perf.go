package amd64

import "goprof/arch"

// perf is the order of enum perf_event_x86_regs: ax, bx, cx, dx, si, di, bp, sp, ip from 0, and r8 to r15 from 16
// (arch/x86/include/uapi/asm/perf_regs.h). Kernels before 5.11, and all kernels in an NMI, do not report some
// registers: those that most system calls of older kernels did not save (arch/x86/kernel/perf_regs.c,
// perf_get_regs_user).
var perf = arch.PerfLayout{
	Mask: 0x1ff | 0xff<<16,
	Order: []int8{
		rax, rbx, rcx, rdx, rsi, rdi, rbp, rsp, rip,
		r8, r9, r10, r11, r12, r13, r14, r15,
	},
	Unreported: 1<<rbx | 1<<r12 | 1<<r13 | 1<<r14 | 1<<r15,
}
