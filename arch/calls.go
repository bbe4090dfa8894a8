package arch

// Call is what a system call does, as far as it tells what a thread that is in it waits for.
type Call uint8

const (
	CallOther Call = iota
	CallSleep      // until a time has come
	CallFutex      // until another thread wakes it
	// CallRestart goes on with another call, a wait with a time limit, after a signal or a stop (restart_syscall(2)).
	CallRestart
	// All below are about a file descriptor, which is their first argument.
	CallRead
	CallWrite
	CallAccept
	CallConnect
	CallReceive
	CallSend
	CallSync   // wait until a file is on its disk
	CallFile   // others that change or lock a file
	CallSelect // wait for any of those that an epoll instance has been told of
	// CallPoll is about those that the array tells of that is its first argument (struct pollfd,
	// include/uapi/asm-generic/poll.h); the second says how many.
	CallPoll
)

var callNames = [...]string{
	CallOther: "", CallSleep: "sleep", CallFutex: "futex", CallRestart: "", CallRead: "read", CallWrite: "write", CallAccept: "accept",
	CallConnect: "connect", CallReceive: "receive", CallSend: "send", CallSync: "sync", CallFile: "", CallSelect: "select", CallPoll: "poll",
}

// String is the call in one word, empty if there is none for it.
func (c Call) String() string {
	if int(c) < len(callNames) {
		return callNames[c]
	}
	return ""
}

// HasFile reports whether the first argument is a file descriptor.
func (c Call) HasFile() bool { return c >= CallRead && c <= CallSelect }

// The numbers of x86-64 (arch/x86/entry/syscalls/syscall_64.tbl).
var amd64Calls = map[int64]Call{
	0: CallRead, 17: CallRead, 19: CallRead, 295: CallRead, 327: CallRead, 217: CallRead, // read pread64 readv preadv preadv2 getdents64
	1: CallWrite, 18: CallWrite, 20: CallWrite, 296: CallWrite, 328: CallWrite, // write pwrite64 writev pwritev pwritev2
	40: CallWrite, 326: CallRead, 275: CallRead, // sendfile copy_file_range splice
	43: CallAccept, 288: CallAccept, 42: CallConnect, // accept accept4 connect
	45: CallReceive, 47: CallReceive, 299: CallReceive, // recvfrom recvmsg recvmmsg
	44: CallSend, 46: CallSend, 307: CallSend, // sendto sendmsg sendmmsg
	74: CallSync, 75: CallSync, 277: CallSync, // fsync fdatasync sync_file_range
	73: CallFile, 77: CallFile, 285: CallFile, // flock ftruncate fallocate
	7: CallPoll, 271: CallPoll, // poll ppoll
	232: CallSelect, 281: CallSelect, 441: CallSelect, // epoll_wait epoll_pwait epoll_pwait2
	202: CallFutex, 449: CallFutex, // futex futex_waitv
	35: CallSleep, 230: CallSleep, // nanosleep clock_nanosleep
	219: CallRestart,
}

// The numbers of aarch64 (include/uapi/asm-generic/unistd.h), in the same order.
var arm64Calls = map[int64]Call{
	63: CallRead, 67: CallRead, 65: CallRead, 69: CallRead, 286: CallRead, 61: CallRead,
	64: CallWrite, 68: CallWrite, 66: CallWrite, 70: CallWrite, 287: CallWrite,
	71: CallWrite, 285: CallRead, 76: CallRead,
	202: CallAccept, 242: CallAccept, 203: CallConnect,
	207: CallReceive, 212: CallReceive, 243: CallReceive,
	206: CallSend, 211: CallSend, 269: CallSend,
	82: CallSync, 83: CallSync, 84: CallSync,
	32: CallFile, 46: CallFile, 47: CallFile,
	73: CallPoll,
	22: CallSelect, 441: CallSelect,
	98: CallFutex, 449: CallFutex,
	101: CallSleep, 115: CallSleep,
	128: CallRestart,
}
