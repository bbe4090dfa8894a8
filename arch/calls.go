package arch

// Call is what a thread in a system call waits for.
type Call uint8

const (
	CallOther Call = iota
	CallSleep      // until a time has come
	CallFutex      // until another thread wakes it
	// CallRestart goes on with another call, a wait with a time limit, after a signal or a stop (restart_syscall(2)).
	CallRestart
	// The first argument of CallRead to CallSelect is a file descriptor.
	CallRead
	CallWrite
	CallAccept
	CallConnect
	CallReceive
	CallSend
	CallSync   // wait until a file is on its disk
	CallFile   // any other call that changes or locks a file
	CallSelect // wait for any descriptor of an epoll instance
	// CallPoll waits for the file descriptors in an array, its first argument (struct pollfd,
	// include/uapi/asm-generic/poll.h). The second argument is their number.
	CallPoll
	// Calls that change file descriptors. The path is the first argument of CallOpen and the second of CallOpenAt.
	// CallReplace makes its second argument a copy of its first. The descriptor of CallEpoll is its third argument.
	CallOpen
	CallOpenAt
	CallClose
	CallReplace
	CallEpoll
)

var callNames = [...]string{
	CallOther: "", CallSleep: "sleep", CallFutex: "futex", CallRestart: "", CallRead: "read", CallWrite: "write",
	CallAccept:  "accept",
	CallConnect: "connect", CallReceive: "receive", CallSend: "send", CallSync: "sync", CallFile: "", CallSelect: "select",
	CallPoll: "poll", CallOpen: "", CallOpenAt: "", CallClose: "", CallReplace: "", CallEpoll: "",
}

// String returns the call in one word, "" if there is none for it.
func (c Call) String() string {
	if int(c) < len(callNames) {
		return callNames[c]
	}
	return ""
}

// GoesOn reports whether a wait in the call goes on after a stop by ptrace, so that the program does not notice. Many
// other calls end early: epoll_wait, sigtimedwait, semop and io_uring_enter return EINTR. So do socket calls with a
// time limit, and a large write returns a short count (signal(7)). A read goes on, except for one of a socket with a
// time limit, which the JDK does not make.
func (c Call) GoesOn() bool {
	return c == CallSleep || c == CallFutex || c == CallPoll || c == CallRestart || c == CallRead
}

// HasFile reports whether the first argument is a file descriptor.
func (c Call) HasFile() bool { return c >= CallRead && c <= CallSelect }
