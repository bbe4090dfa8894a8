//go:build linux

package guard

import "golang.org/x/sys/unix"

// oldForks are calls that only old CPU architectures have. Newer ones have clone and mknodat instead.
var oldForks = []uint32{unix.SYS_FORK, unix.SYS_VFORK, unix.SYS_MKNOD, unix.SYS_IOPL, unix.SYS_IOPERM}
