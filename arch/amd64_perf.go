package arch

// amd64Perf: enum perf_event_x86_regs is ax, bx, cx, dx, si, di, bp, sp, ip from 0, and r8 to r15 from
// 16 (arch/x86/include/uapi/asm/perf_regs.h). Kernels before 5.11, and any that are asked from an NMI,
// leave out what most system calls did not save once (arch/x86/kernel/perf_regs.c, perf_get_regs_user).
var amd64Perf = PerfLayout{
	Mask: 0x1ff | 0xff<<16,
	Order: []int8{
		amd64RAX, amd64RBX, amd64RCX, amd64RDX, amd64RSI, amd64RDI, amd64RBP, amd64RSP, amd64RIP,
		amd64R8, amd64R9, amd64R10, amd64R11, amd64R12, amd64R13, amd64R14, amd64R15,
	},
	Untold: 1<<amd64RBX | 1<<amd64R12 | 1<<amd64R13 | 1<<amd64R14 | 1<<amd64R15,
}
