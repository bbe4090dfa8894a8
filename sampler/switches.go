//go:build linux

package sampler

import (
	"os"
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Whom we took a CPU from, as the kernel itself notes it.
//
// A CPU's perf event may note each switch between threads on that CPU, with the number of the thread that was there
// before (kernel/events/core.c, perf_event_switch). The last switch before a visit is the one to us. Without this note
// each thread has to be asked whether it was there; with hundreds of them that takes so long that the one that was
// there has gone on elsewhere meanwhile, and cannot be told any more.
//
// The event is on while we wait on that CPU for our visit. It needs CAP_PERFMON, or kernel.perf_event_paranoid 0.

// switchNotes are the notes of one CPU. The kernel writes them backward into a ring and goes on over the oldest ones.
// So the newest one is where the head points.
type switchNotes struct {
	fd   int
	mem  []byte
	head *uint64
	data ringBytes
	old  uint64 // the head when a visit was planned: what was noted before does not tell of it
}

// switchAttr asks for switches, each with the number of the thread that the CPU goes to.
func switchAttr() unix.PerfEventAttr {
	return unix.PerfEventAttr{
		Type:        unix.PERF_TYPE_SOFTWARE,
		Size:        unix.PERF_ATTR_SIZE_VER5,
		Config:      unix.PERF_COUNT_SW_DUMMY,
		Sample_type: unix.PERF_SAMPLE_TID,
		Bits: unix.PerfBitDisabled | unix.PerfBitContextSwitch | unix.PerfBitSampleIDAll | unix.PerfBitWriteBackward |
			unix.PerfBitExcludeHv,
	}
}

// openSwitches begins to note the switches of a CPU. It is nil where that is not permitted.
func openSwitches(cpu int) *switchNotes {
	attr := switchAttr()
	fd, err := unix.PerfEventOpen(&attr, -1, cpu, -1, unix.PERF_FLAG_FD_CLOEXEC)
	if err != nil {
		return nil
	}
	page := os.Getpagesize()
	// Not writable: that allows the kernel to go on over what is old.
	mem, err := unix.Mmap(fd, 0, 2*page, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		unix.Close(fd)
		return nil
	}
	return &switchNotes{fd: fd, mem: mem, data: ringBytes(mem[page:]), head: (*uint64)(unsafe.Pointer(&mem[mmapPageHead]))}
}

func (n *switchNotes) close() {
	if n != nil {
		unix.Munmap(n.mem)
		unix.Close(n.fd)
	}
}

// watch turns the notes on or off. Go's scheduler is not told of the call: a thread with real-time priority that comes
// back from one waits for locks whose holder it may have taken the CPU from (ptrace.SleepUntil).
func (n *switchNotes) watch(on bool) {
	request := uintptr(unix.PERF_EVENT_IOC_DISABLE)
	if on {
		request = unix.PERF_EVENT_IOC_ENABLE
	}
	if n != nil {
		syscall.RawSyscall(unix.SYS_IOCTL, uintptr(n.fd), request, 0)
	}
}

// mark begins the wait for a visit.
func (n *switchNotes) mark() {
	if n != nil {
		n.old = atomic.LoadUint64(n.head)
	}
}

// Of a record of a switch (include/uapi/linux/perf_event.h).
const (
	perfSwitchCPUWide = 15      // PERF_RECORD_SWITCH_CPU_WIDE
	perfMiscSwitchOut = 1 << 13 // PERF_RECORD_MISC_SWITCH_OUT
	perfMiscPreempted = 1 << 14 // PERF_RECORD_MISC_SWITCH_OUT_PREEMPT: it left the CPU, but not its queue
)

// before tells which thread was on the CPU before tid, which has run there ever since; 0 is none. It is none where
// nothing was noted since mark, too: the moment of the visit came before we slept. ok is false if the last note does
// not say so.
func (n *switchNotes) before(tid int) (was int, ok bool) {
	_, was, ok = n.processBefore(tid)
	return was, ok
}

// processBefore is before with the process that the thread is one of.
func (n *switchNotes) processBefore(tid int) (process, was int, ok bool) {
	if n == nil {
		return 0, 0, false
	}
	head := atomic.LoadUint64(n.head)
	if head == n.old {
		return 0, 0, true
	}
	rec, ok := n.data.next(head, head+uint64(len(n.data)))
	if !ok || rec.kind != perfSwitchCPUWide || rec.misc&perfMiscSwitchOut != 0 || rec.end-rec.at < 16 {
		return 0, 0, false
	}
	// u32 next_prev_pid, next_prev_tid; u32 pid, tid of the thread that has the CPU now.
	if int(int32(n.data.u32(rec.at+12))) != tid {
		return 0, 0, false
	}
	process, was = int(int32(n.data.u32(rec.at))), int(int32(n.data.u32(rec.at+4)))
	return max(process, 0), max(was, 0), true // -1: it has ended with that
}

// preempted reports whether the last note but one says of that thread that it left the CPU and wanted to go on: then it
// does not sleep. False is no answer.
func (n *switchNotes) preempted(tid int) bool {
	if n == nil {
		return false
	}
	head := atomic.LoadUint64(n.head)
	end := head + uint64(len(n.data))
	to, ok := n.data.next(head, end)
	if !ok || to.end-head >= uint64(len(n.data)) {
		return false
	}
	from, ok := n.data.next(to.end, end)
	return ok && from.kind == perfSwitchCPUWide && from.misc&perfMiscSwitchOut != 0 && from.misc&perfMiscPreempted != 0 &&
		from.end-from.at >= 16 && int(int32(n.data.u32(from.at+12))) == tid
}
