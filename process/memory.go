//go:build linux

package process

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// maxIovecs is the number of ranges for one system call. The kernel accepts 1,024 (UIO_MAXIOV), but copies lists of
// more than 8 to its heap (UIO_FASTIOV). 64 ranges still fit on goprof's stack, and more would gain little.
const maxIovecs = 64

// Read fills b with the bytes at addr. It may be called from any goroutine and does not allocate.
func (p *Process) Read(addr uint64, b []byte) error {
	n, err := p.ReadUpTo(addr, b)
	if err == nil && n < len(b) {
		return p.faultOrGone()
	}
	return err
}

// ReadUpTo reads those of the bytes at addr that are mapped. A copy of a stack may reach beyond its end.
func (p *Process) ReadUpTo(addr uint64, b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	local := [1]unix.Iovec{{Base: &b[0], Len: uint64(len(b))}}
	remote := [1]unix.RemoteIovec{{Base: uintptr(addr), Len: len(b)}}
	n, err := p.readv(local[:], remote[:])
	if err != nil {
		return 0, p.readError(err)
	}
	return n, nil
}

// ReadMany reads many ranges, with one system call for every 64, and sets OK in each. It may be called from any
// goroutine and does not allocate.
func (p *Process) ReadMany(rs []Range) {
	var local [maxIovecs]unix.Iovec
	var remote [maxIovecs]unix.RemoteIovec
	for i := range rs {
		rs[i].OK = false
	}
	for len(rs) > 0 {
		k := min(len(rs), maxIovecs)
		used := 0
		for i := range rs[:k] {
			if n := len(rs[i].Buf); n > 0 {
				local[used] = unix.Iovec{Base: &rs[i].Buf[0], Len: uint64(n)}
				remote[used] = unix.RemoteIovec{Base: uintptr(rs[i].Addr), Len: n}
				used++
			}
		}
		got := 0
		if used > 0 {
			n, err := p.readv(local[:used], remote[:used])
			if err != nil && err != unix.EFAULT {
				return
			}
			got = max(n, 0)
		}
		rs = rs[markRead(rs[:k], got):]
	}
}

// markRead sets OK in the ranges that were read. got is the number of bytes that the kernel has read in all. The kernel
// stops at the first bad address and does not report it (mm/process_vm_access.c, process_vm_rw_core). So the range in
// which the count ends is the bad one. markRead returns the number of finished ranges.
func markRead(rs []Range, got int) int {
	for i := range rs {
		if got < len(rs[i].Buf) {
			return i + 1
		}
		got -= len(rs[i].Buf)
		rs[i].OK = true
	}
	return len(rs)
}

// errGivenUp is readv's error if the process was given up.
const errGivenUp = unix.ETIMEDOUT

// readv calls process_vm_readv on a live thread. A leader that has exited has no memory, even if its process still
// lives.
func (p *Process) readv(local []unix.Iovec, remote []unix.RemoteIovec) (int, error) {
	for try := 0; ; try++ {
		if !p.calls.begin() {
			return 0, errGivenUp
		}
		n, err := unix.ProcessVMReadv(int(p.tid.Load()), local, remote, 0)
		p.calls.end()
		if err != unix.ESRCH || try == 2 || !p.changeThread() {
			return n, err
		}
	}
}

func (p *Process) readError(err error) error {
	switch err {
	case errGivenUp:
		return ErrSilent
	case unix.EFAULT:
		return p.faultOrGone()
	case unix.ESRCH:
		return ErrGone
	case unix.EPERM, unix.EACCES, unix.ENOSYS: // seccomp filters return any of these
		return ErrNotPermitted
	}
	return fmt.Errorf("process: process_vm_readv: %w", err)
}

// faultOrGone returns why an address could not be read: ErrFault for a bad address, ErrGone if the program has ended.
func (p *Process) faultOrGone() error {
	if err := p.Alive(); err != nil {
		return err
	}
	return ErrFault
}
