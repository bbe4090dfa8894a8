//go:build linux

package perf

import (
	"sync"
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// waker ends the sleep of a thread that waits for descriptors.
type waker struct {
	mu sync.Mutex // guards fd: a closed descriptor may be another file's by now
	fd int        // 0: no thread waits
	// woken is set while the thread is to be woken. Go's poller may forget a write to fd that came before it was asked.
	woken atomic.Bool
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
	w.woken.Store(true) // last: settle may have run in between, and Go's poller may not report the write again
}

// settle lets the thread sleep again. It reads even if woken is not set, because wake may be about to write.
func (w *waker) settle() {
	w.woken.Store(false)
	var woken uint64
	syscall.RawSyscall(unix.SYS_READ, uintptr(w.fd), uintptr(unsafe.Pointer(&woken)), unsafe.Sizeof(woken))
}
