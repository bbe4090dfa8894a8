package arm64

import "goprof/arch"

// The numbers of aarch64 (include/uapi/asm-generic/unistd.h), in the order of arch/amd64.
var calls = map[int64]arch.Call{
	63: arch.CallRead, 67: arch.CallRead, 65: arch.CallRead, 69: arch.CallRead, 286: arch.CallRead, 61: arch.CallRead,
	64: arch.CallWrite, 68: arch.CallWrite, 66: arch.CallWrite, 70: arch.CallWrite, 287: arch.CallWrite,
	71: arch.CallWrite, 285: arch.CallRead, 76: arch.CallRead,
	202: arch.CallAccept, 242: arch.CallAccept, 203: arch.CallConnect,
	207: arch.CallReceive, 212: arch.CallReceive, 243: arch.CallReceive,
	206: arch.CallSend, 211: arch.CallSend, 269: arch.CallSend,
	82: arch.CallSync, 83: arch.CallSync, 84: arch.CallSync,
	32: arch.CallFile, 46: arch.CallFile, 47: arch.CallFile,
	73: arch.CallPoll,
	22: arch.CallSelect, 441: arch.CallSelect,
	98: arch.CallFutex, 449: arch.CallFutex,
	101: arch.CallSleep, 115: arch.CallSleep,
	128: arch.CallRestart,
	56:  arch.CallOpenAt, 437: arch.CallOpenAt, 57: arch.CallClose, 24: arch.CallReplace, 21: arch.CallEpoll,
}
