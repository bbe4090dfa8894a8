//go:build linux

package cpuset

import (
	"runtime"
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"goprof/process/procfs"
)

// HaveCome reports whether there is a CPU now that was not there before.
func HaveCome(before, now []int) bool {
	return slices.ContainsFunc(now, func(cpu int) bool { return !slices.Contains(before, cpu) })
}

const onlineName = "/sys/devices/system/cpu/online"

// onlineFile is the descriptor of the list of CPUs. It stays open: engines read the list each second.
var onlineFile = sync.OnceValue(func() int {
	fd, err := unix.Open(onlineName, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1
	}
	return fd
})

// Online returns the CPUs that threads can run on now.
func Online() []int {
	var buf [1024]byte
	n, _ := unix.Pread(onlineFile(), buf[:], 0)
	list := buf[:max(n, 0)]
	if len(list) == 0 { // it could not be opened, or another program stood in for it and has ended (lxcfs)
		list = readSmall(onlineName, buf[:])
	}
	if cpus := parseList(list); len(cpus) > 0 {
		return cpus
	}
	cpus := make([]int, runtime.NumCPU())
	for i := range cpus {
		cpus[i] = i
	}
	return cpus
}

// Affinity returns the CPUs on which a thread may run.
func Affinity(tid int) (set unix.CPUSet, ok bool) {
	return set, unix.SchedGetaffinity(tid, &set) == nil
}

// parseList reads "0-3,8" (Documentation/admin-guide/cputopology.rst).
func parseList(b []byte) (cpus []int) {
	const most = 1 << 13
	for len(b) > 0 {
		from, rest, ok := procfs.CutUint(b)
		if !ok || from >= most {
			return nil
		}
		b = rest
		to := from
		if len(b) > 0 && b[0] == '-' {
			if to, b, ok = procfs.CutUint(b[1:]); !ok || to >= most || to < from {
				return nil
			}
		}
		for cpu := from; cpu <= to && len(cpus) < most; cpu++ {
			cpus = append(cpus, int(cpu))
		}
		if len(b) == 0 || b[0] != ',' {
			return cpus
		}
		b = b[1:]
	}
	return cpus
}

func readSmall(name string, buf []byte) []byte {
	fd, err := unix.Open(name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer unix.Close(fd)
	n, _ := unix.Read(fd, buf)
	return buf[:max(n, 0)]
}
