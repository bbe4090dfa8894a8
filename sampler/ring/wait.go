//go:build linux

package ring

import (
	"os"
	"time"

	"golang.org/x/sys/unix"

	"goprof/sampler/ptrace"
)

// Waiter waits for records through Go's poller, as network connections wait for data. With blocking system calls, the
// hundreds of runs of an agent woke up Go's scheduler thousands of times a second to take processors away (runtime,
// sysmon and retake). That was more than half of the CPU time that goprof used.
type Waiter struct {
	epoll *os.File
	until int64 // the moment that is set
}

// NewWaiter makes one for all these descriptors.
func NewWaiter(fds []unix.PollFd) (*Waiter, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, err
	}
	for _, p := range fds {
		on := unix.EpollEvent{Events: unix.EPOLLIN, Fd: p.Fd}
		if err == nil {
			err = unix.EpollCtl(fd, unix.EPOLL_CTL_ADD, int(p.Fd), &on)
		}
	}
	if err == nil {
		err = unix.SetNonblock(fd, true) // Go waits for such files by its own epoll
	}
	if err != nil {
		unix.Close(fd)
		return nil, err
	}
	return &Waiter{epoll: os.NewFile(uintptr(fd), "rings")}, nil
}

// Wait returns when there is something, by what has says, or at that moment at the latest. A moment that is set
// already is not set again: for a new timer Go wakes up the OS thread that waits for all timers.
func (w *Waiter) Wait(until int64, has func() bool) error {
	if until != w.until {
		left := time.Duration(until - ptrace.Monotonic())
		if err := w.epoll.SetReadDeadline(time.Now().Add(left)); err != nil {
			return err
		}
		w.until = until
	}
	conn, err := w.epoll.SyscallConn()
	if err != nil {
		return err
	}
	asked := 0
	err = conn.Read(func(uintptr) bool {
		asked++
		return asked > 1 || has()
	})
	if os.IsTimeout(err) {
		w.until = 0 // the clocks may differ a little: it may be set once more
		return nil
	}
	return err
}

// Close ends the Waiter. nil may be closed, too.
func (w *Waiter) Close() {
	if w != nil {
		w.epoll.Close()
	}
}
