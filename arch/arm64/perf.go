package arm64

import "goprof/arch"

// perf: enum perf_event_arm_regs is x0 to x30, sp, pc from 0 (arch/arm64/include/uapi/asm/perf_regs.h).
var perf = arch.PerfLayout{
	Mask: 1<<(regPC+1) - 1,
	Order: []int8{
		0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28,
		x29, x30, regSP, regPC,
	},
}
