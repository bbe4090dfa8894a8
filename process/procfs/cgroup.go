package procfs

import (
	"bytes"
	"path"
	"slices"
	"strings"
	"time"
)

// CgroupPaths reads the paths in /proc/PID/cgroup. A line is "hierarchy:controllers:path" (cgroups(7)). Version 2 has
// one line ("0::path"), version 1 has one for each hierarchy. No path contains a newline (kernel/cgroup/cgroup.c,
// cgroup_mkdir).
func CgroupPaths(b []byte) (paths []string) {
	for _, m := range Memberships(b) {
		paths = append(paths, m.Path)
	}
	return paths
}

// Membership is a line of /proc/PID/cgroup: the group of the process in one hierarchy. Controllers is empty for version
// 2.
type Membership struct {
	Controllers []string
	Path        string
}

// Memberships reads /proc/PID/cgroup.
func Memberships(b []byte) (list []Membership) {
	for line := range bytes.Lines(b) {
		parts := strings.SplitN(strings.TrimSuffix(string(line), "\n"), ":", 3)
		if len(parts) != 3 {
			continue
		}
		m := Membership{Path: parts[2]}
		if parts[1] != "" {
			m.Controllers = strings.Split(parts[1], ",")
		}
		list = append(list, m)
	}
	return list
}

// CgroupMount is where a hierarchy of control groups is mounted.
type CgroupMount struct {
	Version     int      // 1 or 2
	Controllers []string // version 1
	Root        string   // the group that is visible at Point
	Point       string
}

// CgroupMounts reads the mounts of control groups from /proc/self/mountinfo (proc(5)):
//
//	31 23 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate
func CgroupMounts(b []byte) (mounts []CgroupMount) {
	for line := range bytes.Lines(b) {
		before, after, ok := strings.Cut(strings.TrimSuffix(string(line), "\n"), " - ")
		head, tail := strings.Fields(before), strings.Fields(after)
		if !ok || len(head) < 6 || len(tail) < 3 {
			continue
		}
		m := CgroupMount{Root: unescape(head[3]), Point: unescape(head[4])}
		switch tail[0] {
		case "cgroup":
			m.Version = 1
			m.Controllers = strings.Split(tail[2], ",")
		case "cgroup2":
			m.Version = 2
		default:
			continue
		}
		mounts = append(mounts, m)
	}
	return mounts
}

// unescape decodes the kernel's escapes for blanks, tabs, newlines and backslashes in mountinfo (fs/proc_namespace.c,
// mangle).
func unescape(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}

// Dir returns the directory of a group. It returns false if this mount does not show the group.
func (m *CgroupMount) Dir(group string) (string, bool) {
	if !strings.HasPrefix(group, "/") || slices.Contains(strings.Split(group+m.Root, "/"), "..") {
		return "", false // the group is outside of goprof's namespace (kernel/cgroup/cgroup.c, cgroup_path_ns)
	}
	group, root := path.Clean(group), path.Clean(m.Root)
	rest, ok := strings.CutPrefix(group, strings.TrimSuffix(root, "/"))
	if !ok || rest != "" && rest[0] != '/' {
		return "", false
	}
	return path.Join(m.Point, rest), true
}

func (m *CgroupMount) Controls(controller string) bool {
	return m.Version == 2 || slices.Contains(m.Controllers, controller)
}

// CPUMax reads cpu.max of version 2, "150000 100000": the CPU time in each period, and the length of a period, in
// microseconds. limited is false for "max".
func CPUMax(b []byte) (cpus float64, limited, ok bool) {
	word, rest := cutWord(b)
	period, _, ok := cutNumber(rest)
	if !ok || period == 0 {
		return 0, false, false
	}
	if string(word) == "max" {
		return 0, false, true
	}
	quota, ok := number(word)
	return float64(quota) / float64(period), ok, ok
}

// CPUQuota reads cpu.cfs_quota_us and cpu.cfs_period_us of version 1. limited is false for a quota of -1.
func CPUQuota(quota, period []byte) (cpus float64, limited, ok bool) {
	p, ok := Number(period)
	if !ok || p == 0 {
		return 0, false, false
	}
	if string(bytes.TrimSpace(quota)) == "-1" {
		return 0, false, true
	}
	q, ok := Number(quota)
	return float64(q) / float64(p), ok, ok
}

// Throttling has how often and how long a group had to wait because of its limit, from cpu.stat.
type Throttling struct {
	Periods, Throttled uint64
	Time               time.Duration
}

// ParseThrottling reads nr_periods, nr_throttled, and throttled_time (version 1, in ns) or throttled_usec (version 2)
// of cpu.stat.
func ParseThrottling(b []byte) (t Throttling, ok bool) {
	var ok2, ok3 bool
	t.Periods, ok = Keyed(b, "nr_periods")
	t.Throttled, ok2 = Keyed(b, "nr_throttled")
	n, ok3 := Keyed(b, "throttled_usec")
	if t.Time = Microseconds(n); !ok3 {
		n, ok3 = Keyed(b, "throttled_time")
		t.Time = time.Duration(min(n, 1<<62))
	}
	if !ok || !ok2 || !ok3 {
		return Throttling{}, false
	}
	return t, true
}

// MemoryLimit reads memory.max or memory.limit_in_bytes. limited is false for "max" and for a number near the largest.
func MemoryLimit(b []byte) (bytes uint64, limited, ok bool) {
	if string(trimNewline(b)) == "max" {
		return 0, false, true
	}
	n, ok := Number(b)
	return n, ok && n < noMemoryLimit, ok
}

// noMemoryLimit is less than the number that version 1 writes if there is no limit (mm/memcontrol-v1.c).
const noMemoryLimit = 1 << 60

func trimNewline(b []byte) []byte { return bytes.TrimSuffix(b, []byte("\n")) }
