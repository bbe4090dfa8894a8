package arch

import "math/bits"

// arm64Perf: enum perf_event_arm_regs is x0 to x30, sp, pc from 0 (arch/arm64/include/uapi/asm/perf_regs.h).
var arm64Perf = PerfLayout{
	Mask: 1<<(arm64PC+1) - 1,
	Order: []int8{
		0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28,
		arm64X29, arm64X30, arm64SP, arm64PC,
	},
}

// signedARM64: a signature lies between the address's bits and bit 55 (Documentation/arch/arm64/pointer-authentication.rst).
// How many an address has is the kernel's choice, 36 to 52 (arch/arm64/memory.rst); a program's stack stands at the end
// of the first 48 of them, where there are more.
func signedARM64(highest uint64) uint64 { return 1<<55 - 1<<min(max(bits.Len64(highest-1), 36), 55) }
