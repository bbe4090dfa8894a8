//go:build linux

package visit

import (
	"os"
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"goprof/sampler/ptrace"
	"goprof/sampler/ring"
)

// A preempter takes a CPU from the thread that runs there (ptrace/preempter.go). Notes of the kernel show which thread
// that was.
//
// The kernel can note each switch of threads on a CPU, by a perf event of that CPU (kernel/events/core.c,
// perf_event_switch). A note has the number of the thread that had the CPU before. The last switch before a visit is
// the switch to the preempter, so its note names the wanted thread (whoWasHere).
//
// Without notes goprof has to ask each thread whether it was on the CPU. That takes long if there are hundreds of
// threads. Meanwhile the wanted thread goes on elsewhere, and cannot be found.
//
// The event needs CAP_PERFMON, or kernel.perf_event_paranoid 0.

// switchNotes are the notes of one CPU. The kernel writes notes backward into a ring, over the oldest ones. So the
// ring's head points to the newest note.
type switchNotes struct {
	fd   int
	mem  []byte
	head *uint64
	data ring.Bytes
}

// switchAttr returns the attributes of an event for switches. Each note has the number of the thread that gets the CPU.
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

// openSwitches makes the kernel note the switches of a CPU. It returns nil if that is not permitted.
func openSwitches(cpu int) *switchNotes {
	attr := switchAttr()
	fd, err := unix.PerfEventOpen(&attr, -1, cpu, -1, unix.PERF_FLAG_FD_CLOEXEC)
	if err != nil {
		return nil
	}
	page := os.Getpagesize()
	// Not writable, so that the kernel may overwrite old records.
	mem, err := unix.Mmap(fd, 0, 2*page, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		unix.Close(fd)
		return nil
	}
	return &switchNotes{fd: fd, mem: mem, data: ring.Bytes(mem[page:]), head: (*uint64)(unsafe.Pointer(&mem[ring.HeadAt]))}
}

func (n *switchNotes) close() {
	if n != nil {
		unix.Munmap(n.mem)
		unix.Close(n.fd)
	}
}

func (n *switchNotes) shared() *ptrace.SwitchNotes {
	if n == nil {
		return nil
	}
	return &ptrace.SwitchNotes{Head: n.head, Data: n.data, All: ring.KnowsPIDs()}
}

// watch turns the notes on or off by a system call that Go's scheduler does not know of. After a call that the
// scheduler knows of, a thread takes locks of the scheduler. The calling thread has real-time priority. If it has taken
// the CPU from the holder of such a lock, the holder could never release the lock (ptrace.SleepUntil).
func (n *switchNotes) watch(on bool) {
	request := uintptr(unix.PERF_EVENT_IOC_DISABLE)
	if on {
		request = unix.PERF_EVENT_IOC_ENABLE
	}
	if n != nil {
		syscall.RawSyscall(unix.SYS_IOCTL, uintptr(n.fd), request, 0)
	}
}

// The type and the flags of a record of a switch (include/uapi/linux/perf_event.h).
const (
	perfSwitchCPUWide = ptrace.NoteOfSwitch
	perfMiscSwitchOut = ptrace.NoteOfOut
	perfMiscPreempted = 1 << 14 // PERF_RECORD_MISC_SWITCH_OUT_PREEMPT: the thread left the CPU, but not its queue
)

// before returns which thread a preempter took the CPU from, and its process; 0: there is none. came is the position in
// the notes when the preempter had the CPU. ok is true only if the sampling thread got the CPU next: if another thread
// had it in between, the wanted thread may have run again.
func (n *switchNotes) before(came uint64, preempter, us int) (process, was int, ok bool) {
	if n == nil {
		return 0, 0, false
	}
	here, ok := n.switchAt(atomic.LoadUint64(n.head))
	if !ok || here.out || here.now != us || here.other != preempter {
		return 0, 0, false
	}
	left, ok := n.switchAt(here.end)
	if !ok || !left.out || left.now != preempter || left.end != came {
		return 0, 0, false
	}
	first, ok := n.switchAt(came)
	if !ok || first.out || first.now != preempter {
		return 0, 0, false
	}
	return max(first.process, 0), max(first.other, 0), true // -1: the switch ended the thread
}

// preempted reports whether the thread that a preempter met wanted to go on when it lost the CPU. Such a thread does
// not sleep. False means that this is not known.
func (n *switchNotes) preempted(came uint64, tid int) bool {
	if n == nil {
		return false
	}
	first, ok := n.switchAt(came)
	if !ok {
		return false
	}
	from, ok := n.switchAt(first.end)
	return ok && from.out && from.preempted && from.now == tid
}

type noted struct {
	end            uint64 // where the next older note begins
	out, preempted bool   // out: the thread left the CPU; preempted: but not the CPU's queue
	process, other int    // the other thread of the switch, and its process
	now            int    // the thread that the note is about
}

func (n *switchNotes) switchAt(at uint64) (noted, bool) {
	rec, ok := n.data.Next(at, at+uint64(len(n.data)))
	if !ok || rec.Kind != perfSwitchCPUWide || rec.End-rec.At < 16 {
		return noted{}, false
	}
	// The fields of the record: u32 next_prev_pid, next_prev_tid; u32 pid, tid of the thread that the note is about.
	return noted{rec.End, rec.Misc&perfMiscSwitchOut != 0, rec.Misc&perfMiscPreempted != 0,
		int(int32(n.data.U32(rec.At))), int(int32(n.data.U32(rec.At + 4))), int(int32(n.data.U32(rec.At + 12)))}, true
}
