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

// Frozen says by which control group a process is frozen (docker pause). None of its threads runs.
type Frozen struct {
	Version int // of the hierarchy, 1 or 2
	// Group is the path of the group that was frozen, the process's own or one above it. Empty: goprof does not see it.
	Group string
	dir   string
	id    string // of the container, empty: not known
}

// Stops reports whether a thread can be stopped while it is frozen. A thread in a group of version 1 cannot: it sleeps
// in the kernel until it is thawed (kernel/freezer.c, __refrigerator). One in a group of version 2 can: ptrace
// interrupts its wait (kernel/signal.c, do_freezer_trap).
func (f *Frozen) Stops() bool { return f.Version == 2 }

// Text says what holds the process.
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

// shellWord is a path as a shell reads it: whoever makes a group may call it anything.
func shellWord(s string) string {
	if plainPath.MatchString(s) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// FrozenBy returns the control group that has frozen a process, nil if none has. A goprof in another container cannot
// see that group. It judges by the state of the process's threads.
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

// frozenThreads returns the version of cgroups by which all threads of a process seem to be frozen, or 0 if a thread is
// not. In a group of version 1 they are in state D (kernel/freezer.c, __refrigerator). In one of version 2 they are in
// state S and wait on their way back to the program (kernel/signal.c, do_freezer_trap, which compilers inline into
// get_signal). An unfrozen thread is there only while it is stopped, which is another state.
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
			moves = state != 0 // 0: it has ended meanwhile
		}
	})
	if err != nil || moves {
		return 0
	}
	return version
}

// trapped reports whether a thread that sleeps does so in the freezer's trap, by its wchan.
func trapped(wchan []byte) bool {
	where := string(bytes.TrimSpace(wchan))
	return where == "do_freezer_trap" || where == "get_signal"
}

// containerIn is the id of the container whose groups these are, empty if that is not known.
func containerIn(groups []Membership) string {
	var paths []string
	for _, m := range groups {
		paths = append(paths, m.Path)
	}
	return ContainerOf(paths).ID
}

// maxAbove bounds how many groups above the process's own are read.
const maxAbove = 64

// frozenBy also reports whether goprof sees all groups by which the process could be frozen.
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
			for range maxAbove {
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

// freezes reports whether a line of /proc/PID/cgroup is about a hierarchy whose groups can freeze.
func (m *Membership) freezes() bool {
	return len(m.Controllers) == 0 || slices.Contains(m.Controllers, "freezer")
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
