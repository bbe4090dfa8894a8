package vitals

import (
	"net/netip"
	"time"

	"goprof/process/maybe"
	"goprof/process/procfs"
)

// Process holds the kernel's facts of the process.
type Process struct {
	CPU      maybe.Value[time.Duration] // of all threads, ended ones included
	InKernel maybe.Value[time.Duration] // the part of CPU in the kernel
	RSS      maybe.Value[uint64]        // bytes in memory
	Swap     maybe.Value[uint64]        // bytes swapped out
	// MajorFaults counts how often the process waited for a page from a disk.
	MajorFaults maybe.Value[uint64]
	// ThreadLimit is the least of RLIMIT_NPROC (which counts all processes of the user), the machine's threads-max and
	// pid_max. The limit of the control group is in Cgroup.
	Threads, ThreadLimit maybe.Value[uint64]
	// FDs is the number of open file descriptors. FDLimit is their limit (RLIMIT_NOFILE, the soft limit).
	FDs, FDLimit maybe.Value[uint64]
	// CPUsAllowed is the number of CPUs that the process may run on (sched_setaffinity, cpusets).
	CPUsAllowed maybe.Value[uint64]
}

// Cgroup holds the limits of the process's control groups. The process's own group and each group above may have a
// limit, and the lowest counts. goprof cannot see groups outside of its own namespace, so their facts are not known.
type Cgroup struct {
	// CPUs is the limit of CPU time, in CPUs. Limited distinguishes "no limit" from "not known".
	CPUs    maybe.Value[float64]
	Limited maybe.Value[bool]
	// Periods is the number of periods (mostly of 100 ms) in which the group wanted to run. Throttled is the number of
	// these in which its time was used up. ThrottledTime is how long it was stopped for that, summed over its CPUs.
	Periods, Throttled maybe.Value[uint64]
	ThrottledTime      maybe.Value[time.Duration]

	Memory Pool
	// Cache is the part of Memory.Used that the kernel can reclaim: pages of files.
	Cache maybe.Value[uint64]
	// MemoryLimited distinguishes a group without a limit from one with an unknown limit.
	MemoryLimited maybe.Value[bool]
	Kills         maybe.Value[uint64] // processes of the group that were killed at the limit
	Tasks         Pool                // a number of processes and threads, not bytes
}

// Machine holds the kernel's facts of the machine, which may be a virtual one.
type Machine struct {
	CPUs    maybe.Value[uint64] // online
	Running maybe.Value[uint64] // threads that now have a CPU or want one
	// CPUTime is the work of all CPUs together since the machine began.
	CPUTime maybe.Value[procfs.CPUTime]

	SwappedIn maybe.Value[uint64] // pages, since the machine began
	SwapOut   maybe.Value[uint64]

	// CPUPressure and MemoryPressure are the times that threads have waited for CPU and memory
	// (Documentation/accounting/psi.rst).
	CPUPressure, MemoryPressure maybe.Value[procfs.Pressure]
}

// Socket is a TCP socket of the process.
type Socket struct {
	FD            int
	Local, Remote netip.AddrPort
	State         string // ESTABLISHED, SYN_SENT, LISTEN, ...
	// Unsent is the number of bytes that were sent and not acknowledged. Unread is the number that has arrived and was
	// not read.
	Unsent, Unread uint64
}
