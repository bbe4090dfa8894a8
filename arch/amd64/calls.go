package amd64

import "goprof/arch"

// The numbers of x86-64 (arch/x86/entry/syscalls/syscall_64.tbl).
var calls = map[int64]arch.Call{
	// read pread64 readv preadv preadv2 getdents64
	0: arch.CallRead, 17: arch.CallRead, 19: arch.CallRead, 295: arch.CallRead, 327: arch.CallRead, 217: arch.CallRead,
	// write pwrite64 writev pwritev pwritev2
	1: arch.CallWrite, 18: arch.CallWrite, 20: arch.CallWrite, 296: arch.CallWrite, 328: arch.CallWrite,
	40: arch.CallWrite, 326: arch.CallRead, 275: arch.CallRead, // sendfile copy_file_range splice
	43: arch.CallAccept, 288: arch.CallAccept, 42: arch.CallConnect, // accept accept4 connect
	45: arch.CallReceive, 47: arch.CallReceive, 299: arch.CallReceive, // recvfrom recvmsg recvmmsg
	44: arch.CallSend, 46: arch.CallSend, 307: arch.CallSend, // sendto sendmsg sendmmsg
	74: arch.CallSync, 75: arch.CallSync, 277: arch.CallSync, // fsync fdatasync sync_file_range
	73: arch.CallFile, 77: arch.CallFile, 285: arch.CallFile, // flock ftruncate fallocate
	7: arch.CallPoll, 271: arch.CallPoll, // poll ppoll
	232: arch.CallSelect, 281: arch.CallSelect, 441: arch.CallSelect, // epoll_wait epoll_pwait epoll_pwait2
	202: arch.CallFutex, 449: arch.CallFutex, // futex futex_waitv
	35: arch.CallSleep, 230: arch.CallSleep, // nanosleep clock_nanosleep
	219: arch.CallRestart,
	2:   arch.CallOpen, 85: arch.CallOpen, 257: arch.CallOpenAt, 437: arch.CallOpenAt, // open creat openat openat2
	3: arch.CallClose, 33: arch.CallReplace, 292: arch.CallReplace, 233: arch.CallEpoll, // close dup2 dup3 epoll_ctl
}
