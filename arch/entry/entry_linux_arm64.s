#include "textflag.h"

#define SYS_write 64
#define SYS_exit_group 94
#define SYS_prlimit64 261
#define RLIMIT_AS 9

// The kernel has put argc at 0(RSP). All below is free.
TEXT ·start(SB), NOSPLIT|NOFRAME|TOPFRAME, $0
	SUB	$32, RSP
	MOVD	$0, R0		// ourselves
	MOVD	$RLIMIT_AS, R1
	MOVD	$0, R2		// nothing new
	MOVD	RSP, R3
	MOVD	$SYS_prlimit64, R8
	SVC
	MOVD	0(RSP), R4	// the soft limit
	ADD	$32, RSP
	CBNZ	R0, enough
	MOVD	$0x60000000, R5
	CMP	R5, R4
	BHS	enough		// not below
	MOVD	$2, R0
	MOVD	$·message(SB), R1
	MOVD	$159, R2
	MOVD	$SYS_write, R8
	SVC
	MOVD	$1, R0
	MOVD	$SYS_exit_group, R8
	SVC
enough:
	MOVD	$0, R0		// no function to call at exit
	JMP	_rt0_arm64_linux(SB)
