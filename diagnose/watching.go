//go:build linux

package diagnose

import (
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"goprof/process"
	"goprof/process/maybe"
	"goprof/process/procfs"
)

// This file is for an agent that watches a host all the time. It uses only cheap reads.

// PIDs lists the processes of this host. It returns nil if the list cannot be read.
func (h Host) PIDs() []int { return h.pids() }

// Brief holds the facts of one small file of a process. Reading it costs a hundredth of a look.
type Brief struct {
	Started time.Duration // after the host's boot; start and number together identify a process
	Comm    string        // may hold anything
	Threads int
	CPU     time.Duration
	State   byte   // proc(5): T is stopped
	Space   uint64 // bytes of address space
}

// Brief reads that file. ok is false for threads of the kernel and for processes that have ended.
func (h Host) Brief(pid int) (Brief, bool) {
	stat, comm, ok := h.stat(pid)
	if !ok || !stat.Alive() || stat.Memory == 0 {
		return Brief{}, false
	}
	return Brief{Started: procfs.Ticks(stat.Start), Comm: comm, Threads: stat.Threads, CPU: procfs.Ticks(stat.Ticks),
		State: stat.State, Space: stat.Memory}, true
}

// Glance reports whether a process is a JVM, by /proc alone. It does not read the process's memory. So version, vendor
// and collector are not known, and Main comes from the command line. A JVM that is still starting does not count.
//
// A program that loads no library is hardly a JVM, but could load one. So it is looked at only if closely is set. If
// the process hangs, is is not known.
func (h Host) Glance(pid int, closely bool) (jvm JVM, is maybe.Value[bool]) {
	if _, waits := hung.Load(pid); waits {
		return jvm, is
	}
	answers := true
	jvm, ok := inTime(pid, lookTimeout, func() (JVM, bool) {
		if !closely && complete.has(h.file(pid, "exe")) {
			return JVM{}, false
		}
		return h.glance(pid)
	}, func() (JVM, bool) {
		answers = false
		return JVM{}, false
	})
	return jvm, maybe.If(ok, answers)
}

// programs remembers which programs load no library. To read a program's mappings and the names of its threads costs
// fifty times as much as to ask which file it is, and most programs that live briefly are the same few.
type programs struct {
	sync.Mutex
	known map[fileID]bool
}

var complete programs

// fileID distinguishes a file from all others, and from itself with other contents.
type fileID struct {
	major, minor uint32
	inode        uint64
	changed      unix.StatxTimestamp
}

// idOf asks no server of a network file system, which may never answer (AT_STATX_DONT_SYNC). "" is f itself.
func idOf(f int, link string) (fileID, error) {
	var st unix.Statx_t
	err := unix.Statx(f, link, unix.AT_STATX_DONT_SYNC|unix.AT_EMPTY_PATH, unix.STATX_INO|unix.STATX_CTIME, &st)
	return fileID{st.Dev_major, st.Dev_minor, st.Ino, st.Ctime}, err
}

// mostPrograms bounds what is kept.
const mostPrograms = 4096

// has reports whether the program behind a link of /proc loads no library. A program that may not be read is taken for
// one that does.
func (p *programs) has(link string) bool {
	id, err := idOf(unix.AT_FDCWD, link)
	if err != nil {
		return false
	}
	p.Lock()
	is, known := p.known[id]
	p.Unlock()
	if known {
		return is
	}
	f, size, err := process.OpenKernelLink(link)
	if err != nil {
		return false
	}
	defer f.Close()
	if id, err = idOf(int(f.Fd()), ""); err != nil { // the process may have become another program since
		return false
	}
	is = process.LoadsNothing(f, size)
	p.Lock()
	defer p.Unlock()
	if p.known == nil || len(p.known) >= mostPrograms {
		p.known = map[fileID]bool{}
	}
	p.known[id] = is
	return is
}

func (h Host) glance(pid int) (JVM, bool) {
	libs, readable := h.libraries(pid)
	if readable && libs.kind == unknownProgram && !h.hasVMThread(pid) { // first, as most are no JVMs
		return JVM{}, false
	}
	jvm, comm, ok := h.visible(pid)
	if !ok {
		return JVM{}, false
	}
	line := parseJavaCommand(h.commandLine(pid))
	jvm.Main, jvm.Args, jvm.Options = line.main, line.args, line.options
	switch {
	case readable && libs.kind == openJ9:
		jvm.Problem = new(h.explainOtherProgram(pid))
	case readable:
	case comm == "java" || h.hasVMThread(pid):
		c := h.ExplainForbidden(pid)
		if c.Class == Gone {
			return JVM{}, false
		}
		jvm.Problem = &c
	default:
		return JVM{}, false
	}
	return jvm, true
}

// Cgroup returns the path of the process's innermost cgroup, in the unified hierarchy if there is one. It returns "" if
// the path is not known.
func (h Host) Cgroup(pid int) string {
	b, _ := h.read(h.file(pid, "cgroup"), procfs.MaxFile)
	longest := ""
	for _, path := range procfs.CgroupPaths(b) {
		if len(path) > len(longest) {
			longest = path
		}
	}
	return longest
}
