//go:build linux

#include "textflag.h"

// func threadPointer() uint64
TEXT ·threadPointer(SB), NOSPLIT, $0-8
	MRS  TPIDR_EL0, R0
	MOVD R0, ret+0(FP)
	RET

// func setThreadPointer(to uint64)
TEXT ·setThreadPointer(SB), NOSPLIT, $0-8
	MOVD to+0(FP), R0
	MSR  R0, TPIDR_EL0
	RET
