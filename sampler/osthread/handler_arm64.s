//go:build linux

#include "textflag.h"

// func handler()
//
// The kernel calls it as C does, handler(signal, siginfo, context), and restores all registers afterwards. Go's calls
// expect their argument 8 bytes above the stack pointer.
TEXT ·handler(SB), NOSPLIT|TOPFRAME, $16-0
	MOVD R1, 8(RSP)
	CALL ·handle(SB)
	RET

// func handlerPC() uintptr
TEXT ·handlerPC(SB), NOSPLIT, $0-8
	MOVD $·handler(SB), R0
	MOVD R0, ret+0(FP)
	RET
