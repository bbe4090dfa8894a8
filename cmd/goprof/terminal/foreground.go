//go:build linux

package terminal

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// InForeground reports whether this process has the terminal.
func InForeground() bool {
	group, err := unix.IoctlGetInt(int(os.Stdout.Fd()), unix.TIOCGPGRP)
	return err != nil || group == unix.Getpgrp()
}

// foregroundTries bounds how often goprof stops to wait for the foreground. If no shell would continue goprof, the
// kernel does not stop it.
const foregroundTries = 3

// AwaitForeground stops this process while it is in the background, as writing to the terminal would. A shell says
// so, and fg makes goprof go on.
func AwaitForeground() bool {
	for range foregroundTries {
		if InForeground() {
			return true
		}
		unix.Kill(os.Getpid(), unix.SIGTTOU)
		time.Sleep(10 * time.Millisecond)
	}
	return InForeground()
}
