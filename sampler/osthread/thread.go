//go:build linux

package osthread

import (
	"errors"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Thread is an OS thread that Go does not know, like a Runner's. It runs a function of goprof's in place of a list of
// calls.
//
// That function, and every function that it calls, must be marked nosplit. It works on its Room and on other memory
// that is not Go's heap, and makes raw system calls. It must not use anything that needs Go's runtime: a stack that
// grows, a pointer that it stores, a channel, a map, a panic. Its OS thread has no goroutine.
type Thread struct {
	c    *threadControl
	all  []byte // control, room and stack
	room []byte
}

// threadControl is what both threads know.
type threadControl struct {
	lives atomic.Uint32 // the kernel sets it to 0 when the OS thread has ended (CLONE_CHILD_CLEARTID)
	tid   int32
	main  unsafe.Pointer // of a func(unsafe.Pointer) that is no closure, so it lies outside of Go's heap
	room  unsafe.Pointer
}

// threadStack is the size of a Thread's stack. The linker sees to it that nosplit functions need less than a kilobyte.
const threadStack = 16 << 10

// NewThread makes a Thread with a Room of that many bytes, which is empty. Start starts it.
func NewThread(room int) (*Thread, error) {
	if raceEnabled { // the race detector replaces atomic operations by calls that need a goroutine
		return nil, ErrNoThread
	}
	room = (room + 63) &^ 63
	const access, kind = unix.PROT_READ | unix.PROT_WRITE, unix.MAP_PRIVATE | unix.MAP_ANONYMOUS | unix.MAP_NORESERVE
	all, err := unix.Mmap(-1, 0, controlSize+room+threadStack, access, kind)
	if err != nil {
		return nil, errors.Join(ErrNoThread, err)
	}
	return &Thread{c: (*threadControl)(unsafe.Pointer(unsafe.SliceData(all))), all: all,
		room: all[controlSize:][:room]}, nil
}

// Start starts the OS thread. It runs main, a plain function, with the address of the Room, and ends when main returns.
func (t *Thread) Start(main func(room unsafe.Pointer)) error {
	t.c.main, t.c.room = *(*unsafe.Pointer)(unsafe.Pointer(&main)), t.Room()
	t.c.lives.Store(1)
	if e := t.start(); e != 0 {
		t.c.lives.Store(0)
		return errors.Join(ErrNoThread, e)
	}
	return nil
}

//go:nosplit
func (t *Thread) start() syscall.Errno {
	none, before := ^uint64(0), uint64(0)
	top := uintptr(unsafe.Pointer(unsafe.SliceData(t.all))) + uintptr(len(t.all))
	setSignalMask(&none, &before)
	tid := cloneOnto(t.c, threadFlags, &t.c.lives, top)
	setSignalMask(&before, nil)
	if tid < 0 {
		return syscall.Errno(-tid)
	}
	t.c.tid = int32(tid)
	return 0
}

// begin is where the new OS thread begins.
//
//lint:ignore U1000 the assembly calls it
//go:nosplit
func begin(c *threadControl) {
	(*(*func(unsafe.Pointer))(unsafe.Pointer(&c.main)))(c.room)
}

// TID is the number of the OS thread, for its priority and its CPU.
func (t *Thread) TID() int { return int(t.c.tid) }

// CPU returns the CPU time that the OS thread has used.
func (t *Thread) CPU() time.Duration {
	var ts unix.Timespec
	// The CPU clock of one thread (include/linux/posix-timers_types.h, CPUCLOCK_PERTHREAD_MASK, CPUCLOCK_SCHED).
	if unix.ClockGettime(int32(^t.TID()<<3|6), &ts) != nil {
		return 0
	}
	return time.Duration(ts.Nano())
}

// Room is the address of the Thread's own memory.
func (t *Thread) Room() unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(t.room)) }

// End waits until main has returned, and gives the memory back. The caller has told main to return, if it was started.
func (t *Thread) End() {
	awaitEnd(&t.c.lives)
	unix.Munmap(t.all)
}

// awaitEnd waits until the kernel has set lives to 0. The kernel wakes all threads that sleep on it, by a FUTEX_WAKE
// that is not private (kernel/fork.c, mm_release).
func awaitEnd(lives *atomic.Uint32) {
	for v := lives.Load(); v != 0; v = lives.Load() {
		futex(lives, futexWaitShared, v, nil)
	}
}
