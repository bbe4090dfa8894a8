//go:build linux

// Package osthread makes system calls that may never return, on OS threads that Go does not know.
//
// A read of another process's memory waits until the page comes (mm/process_vm_access.c). A page of userfaultfd, FUSE,
// NFS or a dead disk may never come. Only the death of the whole calling process ends that wait. So code that must not
// wait, because a thread of the target stands still meanwhile, sends a Runner: an OS thread of goprof that makes the
// call. If the call takes too long, goprof abandons the Runner, which sleeps on in the kernel, and starts another one.
//
// Go knows nothing of a Runner's OS thread. It runs a loop in assembly, uses no stack, and has all signals blocked.
// So neither Go's scheduler nor its garbage collector ever waits for it, and it never waits for them. A call must write
// only to the Runner's Room, which is not in Go's heap: a call that was abandoned may still write there when it
// returns.
//
// A Thread runs a function of goprof's in the same way, for work that must not wait for Go's scheduler (sampler/ptrace,
// preempter.go).
package osthread

import (
	"errors"
	"os"
	"strconv"
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"goprof/process/procfs"
)

// control is what both threads know of a call. The assembly knows its layout (clone_*.s).
type control struct {
	asked    atomic.Uint32 // number of the last call that was asked for; the Runner sleeps on it
	answered atomic.Uint32 // number of the last call that has returned; a waiting owner sleeps on it
	waits    atomic.Uint32 // 1: the owner sleeps on answered
	lives    atomic.Uint32 // the kernel sets it to 0 when the OS thread has ended (CLONE_CHILD_CLEARTID)
	result   uintptr
	deadline unix.Timespec
	number   uintptr
	args     [6]uintptr
}

// Runner makes one system call at a time. It belongs to one goroutine.
type Runner struct {
	c    *control
	tid  int
	all  []byte // control and room
	room []byte
}

// controlSize is what of a Runner's memory is not its Room.
const controlSize = 256

// endCall, as a call's number, ends the Runner's OS thread.
const endCall = ^uintptr(0)

// ErrNoThread: the system gives goprof no OS thread, or no memory for it.
var ErrNoThread = errors.New("osthread: no OS thread can be started")

// New starts a Runner whose Room has that many bytes. Room costs memory only where it is used.
func New(room int) (*Runner, error) {
	const access, kind = unix.PROT_READ | unix.PROT_WRITE, unix.MAP_PRIVATE | unix.MAP_ANONYMOUS | unix.MAP_NORESERVE
	all, err := unix.Mmap(-1, 0, controlSize+room, access, kind)
	if err != nil {
		return nil, errors.Join(ErrNoThread, err)
	}
	r := &Runner{c: (*control)(unsafe.Pointer(unsafe.SliceData(all))), all: all, room: all[controlSize:]}
	r.c.lives.Store(1)
	if e := r.start(); e != 0 {
		unix.Munmap(all)
		return nil, errors.Join(ErrNoThread, e)
	}
	return r, nil
}

// threadFlags make an OS thread of this process.
const threadFlags = unix.CLONE_VM | unix.CLONE_FS | unix.CLONE_FILES | unix.CLONE_SIGHAND | unix.CLONE_THREAD |
	unix.CLONE_SYSVSEM | unix.CLONE_CHILD_CLEARTID

// start makes the OS thread. It belongs to this process, so it has the same rights. It inherits the signal mask: Go's
// signal handlers must never run on it.
//
//go:nosplit
func (r *Runner) start() syscall.Errno {
	none, before := ^uint64(0), uint64(0)
	setSignalMask(&none, &before)
	tid := clone(r.c, threadFlags, &r.c.lives)
	setSignalMask(&before, nil)
	if tid < 0 {
		return syscall.Errno(-tid)
	}
	r.tid = tid
	return 0
}

//go:nosplit
func setSignalMask(mask, old *uint64) {
	syscall.RawSyscall6(unix.SYS_RT_SIGPROCMASK, uintptr(unix.SIG_SETMASK),
		uintptr(unsafe.Pointer(mask)), uintptr(unsafe.Pointer(old)), 8, 0, 0)
}

// TID is the number of the OS thread, for its priority and its CPU.
func (r *Runner) TID() int { return r.tid }

// Room is the Runner's own memory. It is never given back while a call may still write to it.
func (r *Runner) Room() []byte { return r.room }

// Go begins a system call on the Runner's OS thread. The call before must have returned.
//
//go:nosplit
func (r *Runner) Go(number uintptr, args *[6]uintptr) {
	c := r.c
	c.number, c.args = number, *args
	c.asked.Store(c.asked.Load() + 1)
	futex(&c.asked, futexWake, 1, nil)
}

// Returned reports whether the call has returned.
//
//go:nosplit
func (r *Runner) Returned() bool { return r.c.answered.Load() == r.c.asked.Load() }

// Wait waits until the call has returned, or until a moment of CLOCK_MONOTONIC, in nanoseconds. It returns Returned.
// It may be called while a thread of the target stands still: it allocates nothing, and Go's scheduler has no part in
// it.
//
//go:nosplit
func (r *Runner) Wait(until int64) bool {
	c := r.c
	if r.Returned() { // a Runner of higher priority on the same CPU has finished by now
		return true
	}
	c.deadline.Sec, c.deadline.Nsec = until/1e9, until%1e9
	c.waits.Store(1)
	for {
		last := c.answered.Load()
		if last == c.asked.Load() {
			break
		}
		if e := futex(&c.answered, futexWaitUntil, last, &c.deadline); e != 0 && e != unix.EAGAIN && e != unix.EINTR {
			break // ETIMEDOUT
		}
	}
	c.waits.Store(0)
	return r.Returned()
}

// Sleeps reports whether the call waits for something in the kernel that may never come.
func (r *Runner) Sleeps() bool { return Sleeps(r.tid) && !r.Returned() }

// Sleeps reports whether an OS thread of this process waits for something in the kernel that may never come: not just
// for a CPU, and not for the lock of the target's address space, whose holder may have no CPU.
func Sleeps(tid int) bool {
	before, _ := os.ReadFile(task(tid, "wchan"))
	if !Waits(tid) {
		return false
	}
	after, _ := os.ReadFile(task(tid, "wchan"))
	return procfs.StaysAsleep(before, after)
}

// Waits reports whether an OS thread of this process waits for something in the kernel, and not just for a CPU.
func Waits(tid int) bool {
	b, err := os.ReadFile(task(tid, "stat"))
	state := procfs.State(b)
	return err == nil && state != 0 && state != 'R'
}

func task(tid int, file string) string { return "/proc/self/task/" + strconv.Itoa(tid) + "/" + file }

// Result is what the last call has returned.
//
//go:nosplit
func (r *Runner) Result() (uintptr, syscall.Errno) {
	const lastErrno = 4095
	if v := r.c.result; v >= -lastErrno&(1<<64-1) {
		return 0, syscall.Errno(-v)
	}
	return r.c.result, 0
}

// End ends the OS thread and gives its memory back. A Runner whose call has not returned stays as it is until this
// process ends.
func (r *Runner) End() {
	if !r.Returned() {
		return
	}
	r.Go(endCall, &[6]uintptr{})
	awaitEnd(&r.c.lives)
	unix.Munmap(r.all)
}

// Wake wakes the threads that wait for that word.
//
//go:nosplit
func Wake(word *atomic.Uint32) { futex(word, futexWake, 1, nil) }

// SleepUntil waits until a moment of CLOCK_MONOTONIC (0: without an end) while word has that value. It returns
// ETIMEDOUT at that moment, 0 if the thread was woken before, EAGAIN if word has another value, EINTR after a signal.
// ts is for the call's use.
//
//go:nosplit
func SleepUntil(word *atomic.Uint32, value uint32, moment int64, ts *unix.Timespec) syscall.Errno {
	if moment == 0 {
		return futex(word, futexWaitUntil, value, nil)
	}
	ts.Sec, ts.Nsec = moment/1e9, moment%1e9
	return futex(word, futexWaitUntil, value, ts)
}

// Operations of futex(2) (include/uapi/linux/futex.h).
const (
	futexWaitShared = 0
	futexWake       = 1 | 128
	futexWaitUntil  = 9 | 128 // FUTEX_WAIT_BITSET: the time is a moment of CLOCK_MONOTONIC
	futexAnyBit     = 1<<32 - 1
)

//go:nosplit
func futex(word *atomic.Uint32, operation uintptr, value uint32, until *unix.Timespec) syscall.Errno {
	_, _, e := syscall.RawSyscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(word)), operation, uintptr(value),
		uintptr(unsafe.Pointer(until)), 0, futexAnyBit)
	return e
}
