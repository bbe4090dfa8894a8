//go:build linux

package sampler

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// ringWaiter waits for records as Go's own connections wait for data. In a blocking system call, hundreds of Lean runs
// would have Go's scheduler wake up thousands of times a second to take processors away (runtime, sysmon and retake):
// that was more than half of what goprof used.
type ringWaiter struct {
	epoll *os.File
}

// newRingWaiter makes one for all these descriptors.
func newRingWaiter(fds []unix.PollFd) (*ringWaiter, error) {
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
	return &ringWaiter{os.NewFile(uintptr(fd), "rings")}, nil
}

// wait returns when there is something, by what has tells, or at the latest after that time.
func (w *ringWaiter) wait(most time.Duration, has func() bool) error {
	if err := w.epoll.SetReadDeadline(time.Now().Add(most)); err != nil {
		return err
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
		return nil
	}
	return err
}

func (w *ringWaiter) close() {
	if w != nil {
		w.epoll.Close()
	}
}
