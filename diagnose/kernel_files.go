//go:build linux

package diagnose

import (
	"errors"
	"fmt"
	"io/fs"
	"path"

	"goprof/process/procfs"
)

// KernelFile is a file in which the kernel describes the machine, of a process, or of its control groups.
type KernelFile struct {
	Name string
	Text []byte
	Err  error // why it could not be read
	// Names: the file holds names that users have given. All other words in such files are the kernel's own.
	Names bool
}

const maxKernelFile = 256 << 10

var (
	machineFiles = []string{"/proc/loadavg", "/proc/pressure/cpu", "/proc/pressure/memory", "/proc/pressure/io",
		"/proc/meminfo", "/proc/vmstat", "/proc/uptime", "/proc/version"}
	processFiles = []string{"limits", "schedstat", "io", "oom_score", "oom_score_adj", "sched", "status", "cgroup"}
	// groupFiles are files of control groups, by their controller, of both versions.
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

// withNames are the files that hold names. The group's files are named after its path.
var withNames = map[string]bool{"sched": true, "status": true, "cgroup": true}

// KernelFiles reads what the kernel says of the machine, of a process, and of its control group and those above it. A
// file that is not there (another version, a controller that is switched off) is left out.
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
