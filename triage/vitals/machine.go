package vitals

import (
	"net/netip"
	"time"

	"goprof/process/maybe"
	"goprof/process/procfs"
)

// Process is what the kernel says of the process.
type Process struct {
	CPU      maybe.Value[time.Duration] // of all threads, also of those that have ended
	InKernel maybe.Value[time.Duration] // the part of it in the kernel
	RSS      maybe.Value[uint64]        // bytes in memory
	Swap     maybe.Value[uint64]        // bytes swapped out
	// MajorFaults is how often it had to wait for a page from a disk.
	MajorFaults maybe.Value[uint64]
	// Threads and ThreadLimit: the least of RLIMIT_NPROC (which counts all processes of its user), the machine's
	// threads-max and pid_max. The limit of its control group is Cgroup's.
	Threads, ThreadLimit maybe.Value[uint64]
	// FDs is how many file descriptors are open, FDLimit how many may be (RLIMIT_NOFILE, the soft limit).
	FDs, FDLimit maybe.Value[uint64]
	// CPUsAllowed is on how many CPUs it may run (sched_setaffinity, cpusets).
	CPUsAllowed maybe.Value[uint64]
}

// Cgroup is what the process's control groups grant it. Its own group and each group above may have a limit: the least
// one counts. A group outside of goprof's own namespace is not seen, so its facts are not known.
type Cgroup struct {
	// CPUs is the time of how many CPUs it may use. It is also not known where there is no limit: Limited says which.
	CPUs    maybe.Value[float64]
	Limited maybe.Value[bool]
	// Periods is in how many periods (of mostly 100 ms) it wanted to run. Throttled is in how many of these its time
	// was used up. ThrottledTime is how long it was stopped for that: with version 1 and 2 the sum over its CPUs.
	Periods, Throttled maybe.Value[uint64]
	ThrottledTime      maybe.Value[time.Duration]

	Memory Pool
	// Cache is the part of Memory.Used that the kernel can take back: pages of files.
	Cache maybe.Value[uint64]
	// MemoryLimited tells a group without a limit from one whose limit is not known.
	MemoryLimited maybe.Value[bool]
	Kills         maybe.Value[uint64] // how many of its processes were killed for that
	Tasks         Pool                // processes and threads, not bytes
}

// Machine is what the kernel says of the machine, or of the virtual one.
type Machine struct {
	CPUs    maybe.Value[uint64] // that run
	Running maybe.Value[uint64] // threads that have a CPU or want one, now
	// CPUTime is what all CPUs together have done since the machine began.
	CPUTime maybe.Value[procfs.CPUTime]

	SwappedIn maybe.Value[uint64] // pages, since the machine began
	SwapOut   maybe.Value[uint64]

	// Pressure is how long threads have waited for it (Documentation/accounting/psi.rst).
	CPUPressure, MemoryPressure maybe.Value[procfs.Pressure]
}

// Socket is a TCP socket of the process.
type Socket struct {
	FD            int
	Local, Remote netip.AddrPort
	State         string // ESTABLISHED, SYN_SENT, LISTEN, ...
	// Unsent is how many bytes were sent and not acknowledged, Unread how many have come and were not read.
	Unsent, Unread uint64
}
