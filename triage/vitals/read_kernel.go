//go:build linux

package vitals

import (
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"goprof/process/maybe"
	"goprof/process/procfs"
)

// maxDescriptors limits how many entries of /proc/PID/fd are counted.
const maxDescriptors = 1 << 20

// readFile reads a file of the kernel. It returns nil if that fails.
func readFile(path string) []byte {
	b, err := procfs.Read(path, maxKernelFile)
	if err != nil {
		return nil
	}
	return b
}

// maxKernelFile limits how much of a file is read. It is enough for /proc/stat of a machine with a thousand CPUs.
const maxKernelFile = 1 << 20

func (v *Vitals) file(name string) string { return fmt.Sprintf("/proc/%d/%s", v.p.PID(), name) }

func (v *Vitals) readProcess(r *Reading) {
	p := &r.Process
	if b := readFile(v.file("stat")); b != nil {
		if stat, ok := procfs.ParseStat(b); ok {
			p.CPU, p.InKernel = maybe.Known(procfs.Ticks(stat.Ticks)), maybe.Known(procfs.Ticks(stat.Kernel))
			p.Threads = maybe.Known(uint64(stat.Threads))
		}
		p.MajorFaults = maybe.If(procfs.MajorFaults(b))
	}
	r.JVM.Uptime = v.uptime()
}

// readLimits reads the use and the limits of the process.
func (v *Vitals) readLimits(r *Reading) {
	p := &r.Process
	status := v.leaderStatus()
	p.RSS = maybe.If(procfs.Kilobytes(status, "VmRSS"))
	p.Swap = maybe.If(procfs.Kilobytes(status, "VmSwap"))
	p.CPUsAllowed = maybe.If(procfs.CPUsAllowed(status))
	p.FDs = countEntries(v.file("fd"))
	limits := readFile(v.file("limits"))
	if n, unlimited, ok := procfs.Limit(limits, "Max open files"); ok && !unlimited {
		p.FDLimit = maybe.Known(n)
	}
	p.ThreadLimit = threadLimit(limits, status)
}

// leaderStatus returns the status of a thread that has memory. The process's first thread may have ended before the
// others.
func (v *Vitals) leaderStatus() []byte {
	tid := v.dir.AnyThread()
	return append([]byte(nil), v.dir.Read(tid, "status")...)
}

// uptime returns the age of the process. The JVM is a little younger.
func (v *Vitals) uptime() maybe.Value[time.Duration] {
	var boot unix.Timespec
	if v.began == 0 || unix.ClockGettime(unix.CLOCK_BOOTTIME, &boot) != nil {
		return maybe.Value[time.Duration]{}
	}
	up := time.Duration(boot.Nano()) - procfs.Ticks(v.began)
	return maybe.If(up, up >= 0)
}

// threadLimit returns the lowest limit for a new thread. RLIMIT_NPROC does not apply to root, nor to processes that may
// exceed limits (kernel/fork.c, copy_process).
func threadLimit(limits, status []byte) maybe.Value[uint64] {
	least := maybe.Value[uint64]{}
	take := func(n uint64, ok bool) {
		if ok && n < least.Or(n+1) {
			least = maybe.Known(n)
		}
	}
	s := procfs.ParseStatus(status)
	exempt := len(status) > 0 && (s.UID == 0 || s.Can(unix.CAP_SYS_RESOURCE) || s.Can(unix.CAP_SYS_ADMIN))
	if n, unlimited, ok := procfs.Limit(limits, "Max processes"); !unlimited && !exempt {
		take(n, ok)
	}
	for _, path := range []string{"/proc/sys/kernel/threads-max", "/proc/sys/kernel/pid_max"} {
		n, ok := procfs.Number(readFile(path))
		take(n, ok)
	}
	return least
}

func countEntries(path string) maybe.Value[uint64] {
	dir, err := os.Open(path)
	if err != nil {
		return maybe.Value[uint64]{} // not readable, for example that of another user
	}
	defer dir.Close()
	n := uint64(0)
	for n < maxDescriptors {
		names, err := dir.Readdirnames(1024)
		n += uint64(len(names))
		if err == io.EOF || len(names) == 0 {
			break
		}
		if err != nil {
			return maybe.Value[uint64]{}
		}
	}
	return maybe.Known(n)
}

func readMachine(m *Machine) {
	if s, ok := procfs.ParseMachineStat(readFile("/proc/stat")); ok {
		m.CPUs, m.Running = maybe.Known(uint64(s.CPUs)), maybe.Known(s.Running)
		m.CPUTime = maybe.Known(s.CPUTime)
	}
	paging := readFile("/proc/vmstat")
	m.SwappedIn, m.SwapOut = maybe.If(procfs.Keyed(paging, "pswpin")), maybe.If(procfs.Keyed(paging, "pswpout"))
	m.CPUPressure = maybe.If(procfs.ParsePressure(readFile("/proc/pressure/cpu")))
	m.MemoryPressure = maybe.If(procfs.ParsePressure(readFile("/proc/pressure/memory")))
}
