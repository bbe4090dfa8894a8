package procfs

import (
	"bytes"
	"slices"
)

// Schedstat is /proc/PID/task/TID/schedstat (Documentation/scheduler/sched-stats.rst).
type Schedstat struct {
	Ran    uint64 // nanoseconds on a CPU
	Waited uint64 // nanoseconds of waiting for a CPU
	Turns  uint64 // how often it got a CPU
}

func ParseSchedstat(b []byte) (s Schedstat, ok bool) {
	for _, v := range []*uint64{&s.Ran, &s.Waited, &s.Turns} {
		if *v, b, ok = cutNumber(b); !ok {
			return Schedstat{}, false
		}
	}
	return s, true
}

// ExecStart reads from /proc/PID/sched when the kernel last updated the thread's CPU time, in ns of its CPU's clock
// (kernel/sched/debug.c, proc_sched_show_task). The first line contains the thread's name, which may be any text.
func ExecStart(b []byte) (ns uint64, ok bool) {
	i := bytes.Index(b, []byte("\n----"))
	if i < 0 {
		return 0, false
	}
	b = b[i:]
	const key = "\nse.exec_start"
	if i = bytes.Index(b, []byte(key)); i < 0 {
		return 0, false
	}
	b = b[i+len(key):]
	for len(b) > 0 && (b[0] == ' ' || b[0] == ':') {
		b = b[1:]
	}
	ms, b, ok := CutUint(b)
	if !ok || ms > 1<<40 || len(b) < 7 || b[0] != '.' {
		return 0, false
	}
	rest, ok := number(b[1:7])
	return ms*1e6 + rest, ok
}

// InKernel reads /proc/PID/task/TID/wchan (fs/proc/base.c, proc_pid_wchan). "0" means that the thread is in the queue
// of its CPU. A function's name means that it has left the queue to wait for something. told is false if the kernel
// does not know the names of its functions. Kernels before 5.16 may write "0" for all threads (StaysAsleep). So goprof
// may stop a waiting thread unnecessarily, but never counts it as running for that reason.
func InKernel(wchan []byte) (waits, told bool) {
	return len(wchan) > 0 && wchan[0] != '0', len(wchan) > 0
}

// atSpaceLock has functions of the kernel, or parts of their names, that sleep only for the lock of an address space.
// wchan leaves out the functions of the lock itself (kernel/sched/core.c, in_sched_functions).
var atSpaceLock = [][]byte{
	[]byte("process_vm_rw"),    // process_vm_readv (mm/process_vm_access.c, process_vm_rw_single_vec)
	[]byte("get_user_pages"),   // the same, after a page has been read (mm/gup.c)
	[]byte("access_remote_vm"), // /proc/PID/cmdline, environ (mm/memory.c)
	[]byte("m_start"),          // /proc/PID/maps (fs/proc/task_mmu.c)
}

// AtSpaceLock reports whether a thread with that wchan waits for the lock of an address space. Another thread holds the
// lock while it maps or unmaps memory. That may take long if it gets no CPU. AtSpaceLock is false if the kernel does
// not know the names of its functions.
func AtSpaceLock(wchan []byte) bool {
	return slices.ContainsFunc(atSpaceLock, func(name []byte) bool { return bytes.Contains(wchan, name) })
}

// StaysAsleep takes the wchan from before and after a look at a waiting thread. It reports whether the thread waits for
// the same thing in both. The lock of an address space does not count, because the thread may have got it in between.
// Both may be "0": kernels before 5.16 name no function if they unwind by ORC (arch/x86/kernel/process.c, get_wchan).
func StaysAsleep(before, after []byte) bool { return bytes.Equal(before, after) && !AtSpaceLock(after) }
