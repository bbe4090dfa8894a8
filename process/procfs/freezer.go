//go:build linux

package procfs

import (
	"bytes"
	"fmt"
	"path"
	"regexp"
	"strings"
)

// Frozen says by which control group a process is frozen (docker pause). None of its threads runs.
type Frozen struct {
	Version int    // of the hierarchy, 1 or 2
	Group   string // the path of the group that was frozen: the process's own or one above it
	dir     string
	id      string // of the container, empty: not known
}

// Stops reports whether a thread can be stopped while it is frozen. One in a group of version 1 sleeps in the kernel
// until it is thawed (kernel/freezer.c, __refrigerator), one in a group of version 2 in a way that ptrace interrupts
// (kernel/signal.c, do_freezer_trap).
func (f *Frozen) Stops() bool { return f.Version == 2 }

// Text says what holds the process.
func (f *Frozen) Text() string { return "frozen by its cgroup " + f.Group }

// Thaw is the command that lets the process run.
func (f *Frozen) Thaw() string {
	value, file := "THAWED", "freezer.state"
	if f.Version == 2 {
		value, file = "0", "cgroup.freeze"
	}
	command := fmt.Sprintf("echo %s >%s", value, shellWord(path.Join(f.dir, file)))
	if f.id != "" {
		command += fmt.Sprintf(" (or docker unpause %s, podman unpause %[1]s)", f.id)
	}
	return command
}

var plainPath = regexp.MustCompile(`^[\w@%+=:,./-]+$`)

// shellWord is a path as a shell reads it: whoever makes a group may call it anything.
func shellWord(s string) string {
	if plainPath.MatchString(s) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// FrozenBy finds the group that has frozen a process, nil if none has, or if goprof does not see the process's group.
func FrozenBy(pid int) *Frozen {
	cgroup, err1 := Read(TaskFile(pid, pid, "cgroup"), MaxFile)
	mounts, err2 := Read("/proc/self/mountinfo", 1<<20)
	if err1 != nil || err2 != nil {
		return nil
	}
	return FrozenIn(cgroup, mounts)
}

// FrozenIn is FrozenBy, by the process's /proc/PID/cgroup and goprof's own mountinfo.
func FrozenIn(cgroup, mountinfo []byte) *Frozen {
	return frozenBy(Memberships(cgroup), CgroupMounts(mountinfo), func(file string) []byte {
		b, _ := Read(file, 4096)
		return b
	})
}

// maxAbove bounds how many groups above the process's own are read.
const maxAbove = 64

func frozenBy(groups []Membership, mounts []CgroupMount, read func(string) []byte) *Frozen {
	for _, m := range groups {
		for i := range mounts {
			mount := &mounts[i]
			dir, ok := mount.Dir(m.Path)
			if !ok || !mount.holds(&m) {
				continue
			}
			f := &Frozen{Version: mount.Version, Group: m.Path, dir: dir, id: ContainerOf([]string{m.Path}).ID}
			for range maxAbove {
				if f.orders(read) {
					return f
				}
				if f.dir == mount.Point || f.Group == "/" {
					break
				}
				f.dir, f.Group = path.Dir(f.dir), path.Dir(f.Group)
			}
		}
	}
	return nil
}

// holds reports whether a mount shows the hierarchy with the freezer that a line of /proc/PID/cgroup is about.
func (m *CgroupMount) holds(line *Membership) bool {
	if m.Version == 2 {
		return len(line.Controllers) == 0
	}
	has := CgroupMount{Version: 1, Controllers: line.Controllers}
	return m.Controls("freezer") && has.Controls("freezer")
}

// orders reports whether this group was told to freeze (Documentation/admin-guide/cgroup-v2.rst, cgroup.freeze;
// cgroup-v1/freezer-subsystem.rst, freezer.self_freezing). A group above may freeze it, too.
func (f *Frozen) orders(read func(string) []byte) bool {
	file := "freezer.self_freezing"
	if f.Version == 2 {
		file = "cgroup.freeze"
	}
	return string(bytes.TrimSpace(read(path.Join(f.dir, file)))) == "1"
}
