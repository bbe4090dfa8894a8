//go:build linux

package terminal

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// InForeground reports whether this process is in the terminal's foreground.
func InForeground() bool {
	group, err := unix.IoctlGetInt(int(os.Stdout.Fd()), unix.TIOCGPGRP)
	return err != nil || group == unix.Getpgrp()
}

// foregroundTries limits how often goprof stops to wait for the foreground. If no shell would continue goprof, the
// kernel does not stop it.
const foregroundTries = 3

// AwaitForeground stops this process while it is in the background, as writing to the terminal would. A shell reports
// the stop, and fg continues goprof.
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
