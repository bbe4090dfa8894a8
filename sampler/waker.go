//go:build linux

package sampler

import (
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// waker ends the sleep of a thread that waits for descriptors.
type waker struct {
	mu sync.Mutex // a descriptor that was closed may be another file's by now
	fd int        // 0: there is nobody to wake
}

// open makes the descriptor to wait for.
func (w *waker) open() error {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fd = fd
	return nil
}

func (w *waker) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	unix.Close(w.fd)
	w.fd = 0
}

// wake may be called from any goroutine.
func (w *waker) wake() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if one := uint64(1); w.fd > 0 {
		syscall.RawSyscall(unix.SYS_WRITE, uintptr(w.fd), uintptr(unsafe.Pointer(&one)), unsafe.Sizeof(one))
	}
}

// settle has the thread sleep again. It is called by the one that opened it.
func (w *waker) settle() {
	var woken uint64
	syscall.RawSyscall(unix.SYS_READ, uintptr(w.fd), uintptr(unsafe.Pointer(&woken)), unsafe.Sizeof(woken))
}
