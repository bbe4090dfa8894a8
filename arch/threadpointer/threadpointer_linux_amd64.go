// Package threadpointer reads the thread pointer of the calling OS thread: the register from which thread-local
// variables are found.
package threadpointer

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

const archGetFS = 0x1003 // arch/x86/include/uapi/asm/prctl.h, ARCH_GET_FS

// With calls f with the thread pointer of this OS thread.
func With(f func(own uint64) error) error {
	own := new(uint64)
	if _, _, e := unix.RawSyscall(unix.SYS_ARCH_PRCTL, archGetFS, uintptr(unsafe.Pointer(own)), 0); e != 0 {
		return e
	}
	return f(*own)
}
