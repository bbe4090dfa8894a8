//go:build linux

package ring

import (
	"errors"
	"os"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"goprof/arch"
	"goprof/arch/cpus"
	"goprof/process/procfs"
)

// MostStack is the largest copy of a stack that the kernel makes: a record has 16 bits for its length
// (kernel/events/core.c, perf_copy_attr, perf_sample_ustack_size).
const MostStack = 65528

const perfSampleType = unix.PERF_SAMPLE_TID | unix.PERF_SAMPLE_TIME |
	unix.PERF_SAMPLE_REGS_USER | unix.PERF_SAMPLE_STACK_USER

// Kernel is what samples are to have of a thread that is in the kernel.
type Kernel uint8

const (
	NoKernel     Kernel = iota // no samples: goprof may not look at threads in the kernel
	InKernel                   // the stack with which the thread entered the kernel
	KernelFrames               // the same, and the kernel's functions
)

// SampleAttr asks for a sample after each period of a thread's CPU time.
//
// The clock is the kernel's task clock, a timer that runs while the thread runs. The CPU's cycle counter would be
// worse: most virtual machines have none; its interrupt is an NMI, in which the kernel does not report the registers of
// system calls; and cycles are not time. A cycle counter would not be more exact either: a timer of nanoseconds is
// exact to one instruction. As events of a thread, task-clock and cpu-clock are the same.
func SampleAttr(cpu *arch.CPU, period int64, stack int, kernel Kernel, prompt bool) unix.PerfEventAttr {
	attr := unix.PerfEventAttr{
		Type:              unix.PERF_TYPE_SOFTWARE,
		Size:              unix.PERF_ATTR_SIZE_VER5, // as long as Linux 4.1's, which has all of this
		Config:            unix.PERF_COUNT_SW_TASK_CLOCK,
		Sample:            uint64(period),
		Sample_type:       perfSampleType,
		Bits:              unix.PerfBitUseClockID | unix.PerfBitExcludeHv,
		Clockid:           unix.CLOCK_MONOTONIC,
		Sample_regs_user:  cpu.Perf.Mask,
		Sample_stack_user: uint32(stack) &^ 7,
	}
	switch kernel {
	case NoKernel:
		attr.Bits |= unix.PerfBitExcludeKernel
	case KernelFrames:
		attr.Sample_type |= unix.PERF_SAMPLE_CALLCHAIN
		attr.Bits |= unix.PerfBitExcludeCallchainUser
	}
	if prompt {
		attr.Wakeup = 1 // records
	}
	return attr
}

// holderAttr returns an event that never happens. It asks for no watermark. So its ring wakes the reader when the ring
// is half full, whatever the ring's size is (kernel/events/ring_buffer.c, ring_buffer_init).
func holderAttr() unix.PerfEventAttr {
	return unix.PerfEventAttr{
		Type:    unix.PERF_TYPE_SOFTWARE,
		Size:    unix.PERF_ATTR_SIZE_VER5,
		Config:  unix.PERF_COUNT_SW_DUMMY,
		Bits:    unix.PerfBitUseClockID | unix.PerfBitExcludeKernel,
		Clockid: unix.CLOCK_MONOTONIC,
	}
}

// OpenEvent makes an event of thread tid on a CPU. The samples of the event go to that CPU's ring.
func OpenEvent(attr *unix.PerfEventAttr, tid, cpu int, ring *Ring) (int, error) {
	fd, err := unix.PerfEventOpen(attr, tid, cpu, -1, unix.PERF_FLAG_FD_CLOEXEC)
	if err != nil {
		return -1, &Error{"perf_event_open", err}
	}
	if err := unix.IoctlSetInt(fd, unix.PERF_EVENT_IOC_SET_OUTPUT, ring.FD); err != nil {
		unix.Close(fd)
		return -1, &Error{"PERF_EVENT_IOC_SET_OUTPUT", err}
	}
	return fd, nil
}

// SetPeriod makes an event begin again, with another period.
func SetPeriod(fd int, period *uint64) {
	unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.PERF_EVENT_IOC_PERIOD, uintptr(unsafe.Pointer(period)))
}

// Error says which step of setting up perf_event failed.
type Error struct {
	Call string
	Err  error
}

func (e *Error) Error() string { return "sampler: " + e.Call + ": " + e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

// ErrTimeNamespace: goprof is in a time namespace. The kernel's records and BPF programs have the machine's
// CLOCK_MONOTONIC (kernel/events/core.c, perf_event_set_clock; bpf_ktime_get_ns), and goprof's own is another one.
var ErrTimeNamespace = errors.New("goprof is in a time namespace")

var ownClockAhead = sync.OnceValue(func() time.Duration {
	ahead, _ := procfs.ClockAhead("self")
	return ahead
})

// SameClock refuses records whose times goprof could not compare with its own.
func SameClock() error {
	if ownClockAhead() != 0 {
		return &Error{"perf_event_open", ErrTimeNamespace}
	}
	return nil
}

// Power is what perf_event lets goprof see of a process.
type Power struct {
	Kernel bool // samples are also taken while a thread is in the kernel: system calls, page faults
}

// Try finds out whether perf_event may be used on a process, and for what. It opens an event that never begins, on a
// thread of that process, and closes it; pid 0 is goprof itself.
func Try(pid int) (Power, error) {
	cpu := cpus.Here()
	if cpu == nil {
		return Power{}, &Error{"perf_event_open", unix.EOPNOTSUPP}
	}
	if err := SameClock(); err != nil {
		return Power{}, err
	}
	tid := pid
	if pid != 0 {
		proc := procfs.OpenDir(pid)
		tid = proc.AnyThread()
		proc.Close()
	}
	var err error
	for _, kernel := range []Kernel{InKernel, NoKernel} {
		attr := SampleAttr(cpu, 1e9, MostStack, kernel, false)
		attr.Bits |= unix.PerfBitDisabled
		var fd int
		if fd, err = unix.PerfEventOpen(&attr, tid, -1, -1, unix.PERF_FLAG_FD_CLOEXEC); err == nil {
			unix.Close(fd)
			return Power{Kernel: kernel == InKernel}, nil
		}
		if err != unix.EACCES && err != unix.EPERM {
			break
		}
	}
	return Power{}, &Error{"perf_event_open", err}
}

// Filtered reports whether a seccomp filter answers in the kernel's place. The kernel refuses flags that do not
// exist with EINVAL, before it asks for any right (kernel/events/core.c, perf_event_open).
func Filtered() bool {
	const none = ^uintptr(0)
	_, _, e := unix.RawSyscall6(unix.SYS_PERF_EVENT_OPEN, 0, none, none, none, none, 0)
	return e == unix.EPERM || e == unix.EACCES || e == unix.ENOSYS
}

// initialPIDs is the name of the namespace of process numbers that the kernel begins with (include/linux/proc_ns.h,
// PROC_PID_INIT_INO).
const initialPIDs = "pid:[4026531836]"

// KnowsPIDs reports whether goprof knows processes by the numbers that BPF programs see.
func KnowsPIDs() bool {
	space, err := os.Readlink("/proc/self/ns/pid")
	return err == nil && space == initialPIDs
}

// ErrNested: goprof is in a PID namespace.
var ErrNested = errors.New("sampler: BPF programs know processes by their numbers outside of goprof's PID namespace")
