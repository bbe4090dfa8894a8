//go:build linux

#include "textflag.h"

// func handler()
//
// The kernel calls it as C does, handler(signal, siginfo, context), and restores all registers afterwards.
TEXT ·handler(SB), NOSPLIT|TOPFRAME, $8-0
	MOVQ SI, 0(SP)
	CALL ·handle(SB)
	RET

// func handlerPC() uintptr
TEXT ·handlerPC(SB), NOSPLIT, $0-8
	LEAQ ·handler(SB), AX
	MOVQ AX, ret+0(FP)
	RET
