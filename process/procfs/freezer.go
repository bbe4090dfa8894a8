//go:build linux

package procfs

import (
	"bytes"
	"cmp"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

// Frozen is the control group that has frozen a process (docker pause): none of its threads runs.
type Frozen struct {
	Version int // of the hierarchy, 1 or 2
	// Group is the path of the frozen group: the process's own or a group above it. It is empty if goprof does not see the
	// group.
	Group string
	dir   string
	id    string // the container's id, empty if not known
}

// Stops reports whether goprof can stop a frozen thread. With version 1 the thread sleeps in the kernel until it is
// thawed (kernel/freezer.c, __refrigerator). With version 2 ptrace interrupts its wait (kernel/signal.c,
// do_freezer_trap).
func (f *Frozen) Stops() bool { return f.Version == 2 }

// Text describes the group in words, for the user.
func (f *Frozen) Text() string {
	if f.Group == "" {
		return "frozen, as docker pause does it, by a cgroup that goprof does not see from its own container"
	}
	return "frozen by its cgroup " + f.Group
}

// Thaw returns the command that lets the process run.
func (f *Frozen) Thaw() string {
	if f.Group == "" {
		return fmt.Sprintf("docker unpause %s, or podman unpause %[1]s, on the host", cmp.Or(f.id, "CONTAINER"))
	}
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

// shellWord quotes a path for a shell. The name of a group may contain any character.
func shellWord(s string) string {
	if plainPath.MatchString(s) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// FrozenBy returns the control group that has frozen a process, nil if none has. If the process is in another
// container, goprof cannot see that group. Then it decides by the states of the process's threads.
func FrozenBy(pid int) *Frozen {
	cgroup, err1 := Read(TaskFile(pid, pid, "cgroup"), MaxFile)
	mounts, err2 := Read("/proc/self/mountinfo", 1<<20)
	if err1 != nil || err2 != nil {
		return nil
	}
	groups := Memberships(cgroup)
	f, seen := frozenBy(groups, CgroupMounts(mounts), func(file string) []byte {
		b, _ := Read(file, 4096)
		return b
	})
	if f != nil || seen {
		return f
	}
	version := frozenThreads(pid)
	if version == 0 {
		return nil
	}
	return &Frozen{Version: version, id: containerIn(groups)}
}

// frozenThreads returns the version of cgroups that seems to have frozen all threads of a process, or 0 if a thread is
// not frozen. In a frozen group of version 1, threads are in state D (kernel/freezer.c, __refrigerator). In one of
// version 2, they are in state S and wait on their way back to the program (kernel/signal.c, do_freezer_trap, which
// compilers inline into get_signal). An unfrozen thread waits there only while it is stopped, which is another state.
func frozenThreads(pid int) (version int) {
	dir := OpenDir(pid)
	defer dir.Close()
	moves := false
	err := dir.Threads(func(tid int) {
		if moves {
			return
		}
		switch state, _ := dir.Status(tid); {
		case state == 'D':
			version = max(version, 1)
		case state == 'S' && trapped(dir.Read(tid, "wchan")):
			version = 2
		default:
			moves = state != 0 // 0: the thread has ended
		}
	})
	if err != nil || moves {
		return 0
	}
	return version
}

// trapped reports whether a sleeping thread with that wchan is frozen by version 2.
func trapped(wchan []byte) bool {
	where := string(bytes.TrimSpace(wchan))
	return where == "do_freezer_trap" || where == "get_signal"
}

// containerIn returns the id of the container that has these groups, empty if it is not known.
func containerIn(groups []Membership) string {
	var paths []string
	for _, m := range groups {
		paths = append(paths, m.Path)
	}
	return ContainerOf(paths).ID
}

// frozenBy finds the group that has frozen a process. seen is true if goprof sees all groups that can freeze the
// process.
func frozenBy(groups []Membership, mounts []CgroupMount, read func(string) []byte) (f *Frozen, seen bool) {
	seen = true
	for _, m := range groups {
		shown := !m.freezes()
		for i := range mounts {
			mount := &mounts[i]
			dir, ok := mount.Dir(m.Path)
			if !ok || !mount.holds(&m) {
				continue
			}
			f := &Frozen{Version: mount.Version, Group: m.Path, dir: dir, id: ContainerOf([]string{m.Path}).ID}
			shown = true
			for range maxGroups {
				if f.orders(read) {
					return f, true
				}
				if f.dir == mount.Point || f.Group == "/" {
					break
				}
				f.dir, f.Group = path.Dir(f.dir), path.Dir(f.Group)
			}
		}
		seen = seen && shown
	}
	return nil, seen
}

// freezes reports whether groups of the line's hierarchy can freeze.
func (m *Membership) freezes() bool {
	return len(m.Controllers) == 0 || slices.Contains(m.Controllers, "freezer")
}

// holds reports whether a mount shows the line's hierarchy, and that hierarchy can freeze.
func (m *CgroupMount) holds(line *Membership) bool {
	if m.Version == 2 {
		return len(line.Controllers) == 0
	}
	has := CgroupMount{Version: 1, Controllers: line.Controllers}
	return m.Controls("freezer") && has.Controls("freezer")
}

// orders reports whether this group itself was set to be frozen (Documentation/admin-guide/cgroup-v2.rst,
// cgroup.freeze; cgroup-v1/freezer-subsystem.rst, freezer.self_freezing). A group above may also freeze it.
func (f *Frozen) orders(read func(string) []byte) bool {
	file := "freezer.self_freezing"
	if f.Version == 2 {
		file = "cgroup.freeze"
	}
	return string(bytes.TrimSpace(read(path.Join(f.dir, file)))) == "1"
}
