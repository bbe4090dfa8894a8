#include "textflag.h"

// func get() uint64
TEXT ·get(SB), NOSPLIT, $0-8
	MRS  TPIDR_EL0, R0
	MOVD R0, ret+0(FP)
	RET

// func set(to uint64)
TEXT ·set(SB), NOSPLIT, $0-8
	MOVD to+0(FP), R0
	MSR  R0, TPIDR_EL0
	RET
