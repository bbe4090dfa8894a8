//go:build linux

#include "textflag.h"

// Offsets in control (runner.go).
#define asked 0
#define answered 4
#define waits 8
#define result 16
#define number 40
#define arg0 48
#define arg2 64
#define arg4 80

// func clone(c *control, flags uintptr, lives *atomic.Uint32) int
//
// The new thread has our stack pointer and never uses it: it calls nothing, and no signal reaches it. Registers keep
// their values in it. R19 is c, R20 the number of the last call.
TEXT ·clone(SB), NOSPLIT|NOFRAME, $0-32
	MOVD c+0(FP), R19
	MOVD flags+8(FP), R0
	MOVD lives+16(FP), R4
	MOVD $0, R1
	MOVD $0, R2
	MOVD $0, R3
	MOVD $220, R8 // clone
	SVC
	CBZ  R0, thread
	MOVD R0, ret+24(FP)
	RET

thread:
	MOVD $0, R20

sleep:
	MOVD $asked(R19), R0
	LDARW (R0), R9
	CMPW R20, R9
	BNE  call
	MOVD $128, R1 // FUTEX_WAIT_PRIVATE
	MOVD R20, R2
	MOVD $0, R3
	MOVD $98, R8 // futex
	SVC
	B    sleep

call:
	MOVWU R9, R20
	MOVD number(R19), R8
	CMP  $-1, R8
	BEQ  end
	LDP  arg0(R19), (R0, R1)
	LDP  arg2(R19), (R2, R3)
	LDP  arg4(R19), (R4, R5)
	SVC
	MOVD R0, result(R19)
	MOVD $answered(R19), R0
	STLRW R20, (R0)
	DMB  $0xb // waits is read after it
	MOVWU waits(R19), R9
	CBZ  R9, sleep
	MOVD $129, R1 // FUTEX_WAKE_PRIVATE
	MOVD $1, R2
	MOVD $98, R8
	SVC
	B    sleep

end:
	MOVD $0, R0
	MOVD $93, R8 // exit: of this thread only
	SVC
	BRK

// func cloneOnto(c *threadControl, flags uintptr, lives *atomic.Uint32, top uintptr) int
//
// The new thread calls begin (thread.go), which returns when the thread is to end. Go's calls expect their argument 8
// bytes above the stack pointer.
TEXT ·cloneOnto(SB), NOSPLIT|NOFRAME, $0-40
	MOVD c+0(FP), R19
	MOVD flags+8(FP), R0
	MOVD lives+16(FP), R4
	MOVD top+24(FP), R1
	MOVD $0, R2
	MOVD $0, R3
	MOVD $220, R8 // clone
	SVC
	CBZ  R0, thread
	MOVD R0, ret+32(FP)
	RET

thread:
	SUB  $32, RSP
	MOVD R19, 8(RSP)
	CALL ·begin(SB)
	MOVD $0, R0
	MOVD $93, R8 // exit: of this thread only
	SVC
	BRK
