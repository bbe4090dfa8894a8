//go:build linux

package guard

import "golang.org/x/sys/unix"

// oldForks are calls that newer CPUs' interfaces never had: clone and mknodat do what they did.
var oldForks = []uint32{unix.SYS_FORK, unix.SYS_VFORK, unix.SYS_MKNOD, unix.SYS_IOPL, unix.SYS_IOPERM}
