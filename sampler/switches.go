//go:build linux

package sampler

import (
	"os"
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Which thread we took a CPU from, as the kernel itself notes it.
//
// A CPU's perf event may note each switch between threads on that CPU, with the number of the thread that was there
// before (kernel/events/core.c, perf_event_switch). The last switch before a visit is the switch to us. Without this
// note each thread has to be asked whether it was there. With hundreds of threads that takes so long that the thread in
// question has gone on elsewhere meanwhile, and cannot be told any more.
//
// The event is on while we wait on that CPU for our visit. The event needs CAP_PERFMON, or kernel.perf_event_paranoid
// 0.

// switchNotes are the notes of one CPU. The kernel writes them backward into a ring and overwrites the oldest ones. So
// the newest one is where the head points.
type switchNotes struct {
	fd   int
	mem  []byte
	head *uint64
	data ringBytes
	old  uint64 // the head when a visit was planned: earlier notes do not tell of this visit
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

// openSwitches begins to note the switches of a CPU. It returns nil where that is not permitted.
func openSwitches(cpu int) *switchNotes {
	attr := switchAttr()
	fd, err := unix.PerfEventOpen(&attr, -1, cpu, -1, unix.PERF_FLAG_FD_CLOEXEC)
	if err != nil {
		return nil
	}
	page := os.Getpagesize()
	// Not writable: so the kernel may overwrite old records.
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

// watch turns the notes on or off. Go's scheduler is not told of the call. A thread that comes back from a call that it
// was told of waits for locks. With real-time priority, the thread may have taken the CPU from the holder of such a
// lock (ptrace.SleepUntil).
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

// The type and the flags of a record of a switch (include/uapi/linux/perf_event.h).
const (
	perfSwitchCPUWide = 15      // PERF_RECORD_SWITCH_CPU_WIDE
	perfMiscSwitchOut = 1 << 13 // PERF_RECORD_MISC_SWITCH_OUT
	perfMiscPreempted = 1 << 14 // PERF_RECORD_MISC_SWITCH_OUT_PREEMPT: the thread left the CPU, but not its queue
)

// before tells which thread was on the CPU before tid; 0 is none. tid has run on the CPU ever since. Where nothing was
// noted since mark, the answer is none, too: the moment of the visit came before we slept. ok is false if the last note
// is not of a switch to tid.
func (n *switchNotes) before(tid int) (was int, ok bool) {
	_, was, ok = n.processBefore(tid)
	return was, ok
}

// processBefore is before, and also tells the process of the thread.
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
	return max(process, 0), max(was, 0), true // -1: the thread has ended with this switch
}

// preempted reports whether the last note but one says that the thread left the CPU and wanted to go on: then the
// thread does not sleep. False is no answer.
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
