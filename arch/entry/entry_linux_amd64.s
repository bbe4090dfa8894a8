#include "textflag.h"

#define SYS_write 1
#define SYS_exit_group 231
#define SYS_prlimit64 302
#define RLIMIT_AS 9

// The kernel has put argc at 0(SP) (System V ABI, AMD64 supplement, "Initial Stack and Register State"). All below
// is free.
TEXT ·start(SB), NOSPLIT|NOFRAME|TOPFRAME, $0
	SUBQ	$32, SP
	MOVQ	$SYS_prlimit64, AX
	MOVQ	$0, DI		// ourselves
	MOVQ	$RLIMIT_AS, SI
	MOVQ	$0, DX		// nothing new
	MOVQ	SP, R10
	SYSCALL
	MOVQ	0(SP), BX	// the soft limit
	ADDQ	$32, SP
	CMPQ	AX, $0
	JNE	enough
	MOVQ	$0x60000000, CX
	CMPQ	BX, CX
	JCC	enough		// not below
	MOVQ	$SYS_write, AX
	MOVQ	$2, DI
	LEAQ	·message(SB), SI
	MOVQ	$159, DX
	SYSCALL
	MOVQ	$SYS_exit_group, AX
	MOVQ	$1, DI
	SYSCALL
enough:
	MOVQ	$0, DX		// no function to call at exit
	JMP	_rt0_amd64_linux(SB)
