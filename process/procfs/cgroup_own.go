package procfs

import (
	"path"
	"slices"
	"time"
)

// maxGroups bounds the groups that are read above a process's own.
const maxGroups = 64

// Group is a control group with the groups above it that a mount shows.
type Group struct {
	Version int
	Path    string   // as in /proc/PID/cgroup
	Dirs    []string // its own directory first
}

// GroupOf returns the group of a process in the hierarchy of a controller. This is a hierarchy of version 1, or else
// that of version 2.
func GroupOf(memberships []Membership, mounts []CgroupMount, controller string) (g Group, ok bool) {
	version := 2
	for _, m := range memberships {
		if slices.Contains(m.Controllers, controller) {
			version = 1
		}
	}
	for _, m := range memberships {
		if version == 1 && !slices.Contains(m.Controllers, controller) || version == 2 && len(m.Controllers) > 0 {
			continue
		}
		for i := range mounts {
			mount := &mounts[i]
			dir, seen := mount.Dir(m.Path)
			if mount.Version == version && mount.Controls(controller) && seen {
				return Group{version, m.Path, upTo(dir, mount.Point)}, true
			}
		}
	}
	return Group{}, false
}

// upTo returns a directory and the directories above it, up to top.
func upTo(dir, top string) (dirs []string) {
	for range maxGroups {
		dirs = append(dirs, dir)
		if dir == top || dir == "/" {
			break
		}
		dir = path.Dir(dir)
	}
	return dirs
}

// OwnLimit is a limit on the CPU time of a control group to which this OS thread belongs.
type OwnLimit struct {
	Quota time.Duration // of CPU time in each period
	Stat  string        // the group's cpu.stat
}

const MaxMountinfo = 4 << 20

// OwnCPULimits returns the limits on the CPU time of this OS thread: those of its group and of the groups above. In
// version 1 the threads of a process may be in different groups.
func OwnCPULimits() (limits []OwnLimit) {
	b, _ := Read("/proc/thread-self/cgroup", MaxFile)
	mounts, _ := Read("/proc/self/mountinfo", MaxMountinfo)
	return cpuLimits(b, mounts)
}

// cpuLimits returns the limits of the groups in a /proc/TID/cgroup.
func cpuLimits(cgroup, mountinfo []byte) (limits []OwnLimit) {
	group, ok := GroupOf(Memberships(cgroup), CgroupMounts(mountinfo), "cpu")
	if !ok {
		return nil
	}
	for _, dir := range group.Dirs {
		var quota time.Duration
		if group.Version == 1 {
			us, _ := Read(path.Join(dir, "cpu.cfs_quota_us"), MaxFile) // -1: no limit
			n, _ := Number(us)
			quota = Microseconds(n)
		} else {
			limit, _ := Read(path.Join(dir, "cpu.max"), MaxFile)
			word, _ := cutWord(limit) // "max": no limit
			n, _ := number(word)
			quota = Microseconds(n)
		}
		if quota > 0 {
			limits = append(limits, OwnLimit{quota, path.Join(dir, "cpu.stat")})
		}
	}
	return limits
}

// NoRealTime returns the control group (version 1) of this OS thread if the group gets no time for real-time priority
// (Documentation/scheduler/sched-rt-group.rst). Then no thread of the group can have such a priority, whatever its
// capabilities. file is the file that sets the group's time. It is empty if real-time priority is possible.
func NoRealTime() (group Group, file string) {
	b, _ := Read("/proc/thread-self/cgroup", MaxFile)
	mounts, _ := Read("/proc/self/mountinfo", MaxMountinfo)
	group, ok := GroupOf(Memberships(b), CgroupMounts(mounts), "cpu")
	if !ok || group.Version != 1 {
		return Group{}, ""
	}
	file = path.Join(group.Dirs[0], RealTimeFile)
	us, err := Read(file, MaxFile)
	if n, ok := Number(us); err != nil || !ok || n != 0 {
		return Group{}, ""
	}
	return group, file
}

// RealTimeFile is the file in a control group of version 1 with the microseconds of each second for threads with
// real-time priority.
const RealTimeFile = "cpu.rt_runtime_us"

// Runnable returns how many threads of the machine run or wait for a CPU (/proc/loadavg, "0.20 0.18 0.12 1/80 11206").
func Runnable(loadavg []byte) (n int, ok bool) {
	for range 3 {
		_, loadavg = cutWord(loadavg)
	}
	v, rest, ok := CutUint(loadavg)
	if !ok || v > 1<<30 || len(rest) == 0 || rest[0] != '/' {
		return 0, false
	}
	return int(v), true
}
