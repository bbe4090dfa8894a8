package arm64

import "goprof/arch"

// probe: struct user_pt_regs (arch/arm64/include/uapi/asm/ptrace.h) is x0 to x30, sp, pc, pstate. The arguments are
// those of the procedure call standard.
var probe = func() (l arch.ProbeLayout) {
	for i := range x30 + 1 {
		l.Offsets[i] = int16(8 * i)
	}
	l.Offsets[regSP], l.Offsets[regPC] = 31*8, 32*8
	l.Args = []int8{0, 1, 2, 3, 4, 5, 6, 7}
	l.Nop = []byte{0x1f, 0x20, 0x03, 0xd5}
	return l
}()
