//go:build linux

package diagnose

import (
	"errors"
	"fmt"
	"io/fs"
	"path"

	"goprof/process/procfs"
)

// KernelFile is a file in which the kernel describes the machine, a process, or the process's control groups.
type KernelFile struct {
	Name string
	Text []byte
	Err  error // why it could not be read
	// Names says that the file holds names given by users. All other words in such files are the kernel's own.
	Names bool
}

const maxKernelFile = 256 << 10

var (
	machineFiles = []string{"/proc/loadavg", "/proc/pressure/cpu", "/proc/pressure/memory", "/proc/pressure/io",
		"/proc/meminfo", "/proc/vmstat", "/proc/uptime", "/proc/version"}
	processFiles = []string{"limits", "schedstat", "io", "oom_score", "oom_score_adj", "sched", "status", "cgroup"}
	// groupFiles are files of control groups by controller, for both versions.
	groupFiles = map[string][]string{
		"cpu": {"cpu.max", "cpu.weight", "cpu.stat", "cpu.pressure", "cpu.cfs_quota_us", "cpu.cfs_period_us",
			"cpu.shares"},
		"memory": {"memory.max", "memory.high", "memory.current", "memory.swap.max", "memory.swap.current",
			"memory.events", "memory.stat", "memory.pressure", "memory.limit_in_bytes", "memory.usage_in_bytes",
			"memory.failcnt", "memory.oom_control"},
		"io":   {"io.pressure", "io.stat"},
		"pids": {"pids.max", "pids.current", "pids.events"},
	}
)

// withNames are the files that contain names. A control group's files are named after its path.
var withNames = map[string]bool{"sched": true, "status": true, "cgroup": true}

// KernelFiles reads the kernel's files about the machine, a process, its control group and the groups above. It leaves
// out files that do not exist, because of another version or a controller that is off.
func (h Host) KernelFiles(pid int) (files []KernelFile) {
	read := func(name string, names bool) {
		b, err := procfs.Read(name, maxKernelFile)
		if !errors.Is(err, fs.ErrNotExist) {
			files = append(files, KernelFile{name, b, err, names})
		}
	}
	for _, name := range machineFiles {
		read(name, false)
	}
	for _, name := range processFiles {
		read(fmt.Sprintf("/proc/%d/%s", pid, name), withNames[name])
	}
	memberships, _ := procfs.Read(fmt.Sprintf("/proc/%d/cgroup", pid), procfs.MaxFile)
	mounts, _ := procfs.Read("/proc/self/mountinfo", procfs.MaxMountinfo)
	for _, controller := range []string{"cpu", "memory", "io", "pids"} {
		group, _ := procfs.GroupOf(procfs.Memberships(memberships), procfs.CgroupMounts(mounts), controller)
		for _, dir := range group.Dirs {
			for _, name := range groupFiles[controller] {
				read(path.Join(dir, name), false)
			}
		}
	}
	return files
}
