//go:build linux

#include "textflag.h"

// Offsets in control (runner.go).
#define asked 0
#define answered 4
#define waits 8
#define result 16
#define number 40
#define arg0 48
#define arg1 56
#define arg2 64
#define arg3 72
#define arg4 80
#define arg5 88

// func clone(c *control, flags uintptr, lives *atomic.Uint32) int
//
// The new thread has our stack pointer and never uses it: it calls nothing, and no signal reaches it. Registers keep
// their values in it. R12 is c, R13 the number of the last call.
TEXT ·clone(SB), NOSPLIT|NOFRAME, $0-32
	MOVQ c+0(FP), R12
	MOVQ flags+8(FP), DI
	MOVQ lives+16(FP), R10
	MOVL $0, SI
	MOVL $0, DX
	MOVL $0, R8
	MOVL $56, AX // clone
	SYSCALL
	TESTQ AX, AX
	JEQ  thread
	MOVQ AX, ret+24(FP)
	RET

thread:
	MOVL $0, R13

sleep:
	MOVL asked(R12), AX
	CMPL AX, R13
	JNE  call
	LEAQ asked(R12), DI
	MOVL $128, SI // FUTEX_WAIT_PRIVATE
	MOVL R13, DX
	MOVL $0, R10
	MOVL $202, AX // futex
	SYSCALL
	JMP  sleep

call:
	MOVL AX, R13
	MOVQ number(R12), AX
	CMPQ AX, $-1
	JEQ  end
	MOVQ arg0(R12), DI
	MOVQ arg1(R12), SI
	MOVQ arg2(R12), DX
	MOVQ arg3(R12), R10
	MOVQ arg4(R12), R8
	MOVQ arg5(R12), R9
	SYSCALL
	MOVQ AX, result(R12)
	MOVL R13, AX
	XCHGL AX, answered(R12) // a full barrier: waits is read after it
	MOVL waits(R12), AX
	TESTL AX, AX
	JEQ  sleep
	LEAQ answered(R12), DI
	MOVL $129, SI // FUTEX_WAKE_PRIVATE
	MOVL $1, DX
	MOVL $202, AX
	SYSCALL
	JMP  sleep

end:
	MOVL $0, DI
	MOVL $60, AX // exit: of this thread only
	SYSCALL
	INT  $3

// func cloneOnto(c *threadControl, flags uintptr, lives *atomic.Uint32, top uintptr) int
//
// The new thread calls begin (thread.go), which returns when the thread is to end.
TEXT ·cloneOnto(SB), NOSPLIT|NOFRAME, $0-40
	MOVQ c+0(FP), R12
	MOVQ flags+8(FP), DI
	MOVQ lives+16(FP), R10
	MOVQ top+24(FP), SI
	MOVL $0, DX
	MOVL $0, R8
	MOVL $56, AX // clone
	SYSCALL
	TESTQ AX, AX
	JEQ  thread
	MOVQ AX, ret+32(FP)
	RET

thread:
	SUBQ $16, SP
	MOVQ R12, 0(SP)
	CALL ·begin(SB)
	MOVL $0, DI
	MOVL $60, AX // exit: of this thread only
	SYSCALL
	INT  $3
