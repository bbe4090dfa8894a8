//go:build linux

package sampler

import (
	"errors"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"goprof/arch"
	"goprof/arch/cpus"
	"goprof/process/procfs"
)

// PerfStack is the largest copy of a stack that the kernel makes: a record has 16 bits for its length
// (kernel/events/core.c, perf_copy_attr, perf_sample_ustack_size).
const PerfStack = 65528

const perfSampleType = unix.PERF_SAMPLE_TID | unix.PERF_SAMPLE_TIME |
	unix.PERF_SAMPLE_REGS_USER | unix.PERF_SAMPLE_STACK_USER

// perfKernel is what samples are to have of a thread that is in the kernel.
type perfKernel uint8

const (
	noKernel     perfKernel = iota // no samples: goprof may not look at threads in the kernel
	inKernel                       // the stack with which the thread entered the kernel
	kernelFrames                   // the same, and the kernel's functions
)

// perfAttr asks for a sample after each period of a thread's CPU time.
//
// The clock is the kernel's task clock, a timer that runs while the thread runs. The CPU's cycle counter would be
// worse. Most virtual machines have none. Its interrupt is an NMI, in which the kernel does not tell the registers of
// system calls. Cycles are not time. And a cycle counter would gain nothing: a timer of nanoseconds is as exact as the
// instruction that it meets. As events of a thread, task-clock and cpu-clock are the same.
func perfAttr(cpu *arch.CPU, period int64, stack int, kernel perfKernel, prompt bool) unix.PerfEventAttr {
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
	case noKernel:
		attr.Bits |= unix.PerfBitExcludeKernel
	case kernelFrames:
		attr.Sample_type |= unix.PERF_SAMPLE_CALLCHAIN
		attr.Bits |= unix.PerfBitExcludeCallchainUser
	}
	if prompt {
		attr.Wakeup = 1 // records
	}
	return attr
}

// holderAttr is an event that never happens. It asks for no watermark. So its ring wakes us when the ring is half full,
// whatever the ring's size is (kernel/events/ring_buffer.c, ring_buffer_init).
func holderAttr() unix.PerfEventAttr {
	return unix.PerfEventAttr{
		Type:    unix.PERF_TYPE_SOFTWARE,
		Size:    unix.PERF_ATTR_SIZE_VER5,
		Config:  unix.PERF_COUNT_SW_DUMMY,
		Bits:    unix.PerfBitUseClockID | unix.PerfBitExcludeKernel,
		Clockid: unix.CLOCK_MONOTONIC,
	}
}

// openEvent makes an event of thread tid on a CPU. The samples of the event go to that CPU's ring.
func openEvent(attr *unix.PerfEventAttr, tid, cpu int, ring *perfRing) (int, error) {
	fd, err := unix.PerfEventOpen(attr, tid, cpu, -1, unix.PERF_FLAG_FD_CLOEXEC)
	if err != nil {
		return -1, &PerfError{"perf_event_open", err}
	}
	if err := unix.IoctlSetInt(fd, unix.PERF_EVENT_IOC_SET_OUTPUT, ring.fd); err != nil {
		unix.Close(fd)
		return -1, &PerfError{"PERF_EVENT_IOC_SET_OUTPUT", err}
	}
	return fd, nil
}

// setPeriod makes an event begin anew, with another period.
func setPeriod(fd int, period *uint64) {
	unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.PERF_EVENT_IOC_PERIOD, uintptr(unsafe.Pointer(period)))
}

// PerfError says which step of setting up perf_event failed.
type PerfError struct {
	Call string
	Err  error
}

func (e *PerfError) Error() string { return "sampler: " + e.Call + ": " + e.Err.Error() }
func (e *PerfError) Unwrap() error { return e.Err }

// ErrTimeNamespace: goprof is in a time namespace. The kernel's records and BPF programs have the machine's
// CLOCK_MONOTONIC (kernel/events/core.c, perf_event_set_clock; bpf_ktime_get_ns), and goprof's own is another one.
var ErrTimeNamespace = errors.New("goprof is in a time namespace")

var ownClockAhead = sync.OnceValue(func() time.Duration {
	ahead, _ := procfs.ClockAhead("self")
	return ahead
})

// sameClock refuses records whose times goprof could not compare with its own.
func sameClock() error {
	if ownClockAhead() != 0 {
		return &PerfError{"perf_event_open", ErrTimeNamespace}
	}
	return nil
}

// PerfPower is what perf_event lets us see of a process.
type PerfPower struct {
	Kernel bool // samples are also taken while a thread is in the kernel: system calls, page faults
}

// TryPerf finds out whether perf_event may be used on a process, and for what. It opens an event that never
// begins, on a thread of that process, and closes it; pid 0 is ourselves.
func TryPerf(pid int) (PerfPower, error) {
	cpu := cpus.Here()
	if cpu == nil {
		return PerfPower{}, &PerfError{"perf_event_open", unix.EOPNOTSUPP}
	}
	if err := sameClock(); err != nil {
		return PerfPower{}, err
	}
	tid := pid
	if pid != 0 {
		proc := procfs.OpenDir(pid)
		tid = proc.AnyThread()
		proc.Close()
	}
	var err error
	for _, kernel := range []perfKernel{inKernel, noKernel} {
		attr := perfAttr(cpu, 1e9, PerfStack, kernel, false)
		attr.Bits |= unix.PerfBitDisabled
		var fd int
		if fd, err = unix.PerfEventOpen(&attr, tid, -1, -1, unix.PERF_FLAG_FD_CLOEXEC); err == nil {
			unix.Close(fd)
			return PerfPower{Kernel: kernel == inKernel}, nil
		}
		if err != unix.EACCES && err != unix.EPERM {
			break
		}
	}
	return PerfPower{}, &PerfError{"perf_event_open", err}
}

// PerfFiltered reports whether a seccomp filter answers in the kernel's place. The kernel refuses flags that do not
// exist with EINVAL, before it asks for any right (kernel/events/core.c, perf_event_open).
func PerfFiltered() bool {
	const none = ^uintptr(0)
	_, _, e := unix.RawSyscall6(unix.SYS_PERF_EVENT_OPEN, 0, none, none, none, none, 0)
	return e == unix.EPERM || e == unix.EACCES || e == unix.ENOSYS
}
