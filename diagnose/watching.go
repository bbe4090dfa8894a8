//go:build linux

package diagnose

import (
	"goprof/process/procfs"
	"time"
)

// This file is for an agent that watches a host all the time. It reads only what costs little.

// PIDs lists the processes of this host, nil if the list cannot be read.
func (h Host) PIDs() []int { return h.pids() }

// Brief is what one small file says of a process, at a hundredth of the cost of a look.
type Brief struct {
	Started time.Duration // after the host's boot: with its number it distinguishes a process from all others
	Comm    string        // may hold anything
	Threads int
	CPU     time.Duration
	State   byte // proc(5): T is stopped
}

// Brief reads that file. ok is false for threads of the kernel and for processes that have ended.
func (h Host) Brief(pid int) (Brief, bool) {
	stat, comm, ok := h.stat(pid)
	if !ok || !stat.Alive() || stat.Memory == 0 {
		return Brief{}, false
	}
	return Brief{Started: procfs.Ticks(stat.Start), Comm: comm, Threads: stat.Threads, CPU: procfs.Ticks(stat.Ticks),
		State: stat.State}, true
}

// Glance reports whether a process is a JVM, by /proc alone. It does not read the process's memory. So version, vendor
// and collector are not known, and Main comes from the command line. A JVM that is still starting does not count.
func (h Host) Glance(pid int) (JVM, bool) {
	if _, waits := hung.Load(pid); waits {
		return JVM{}, false
	}
	return inTime(pid, lookTimeout, func() (JVM, bool) { return h.glance(pid) },
		func() (JVM, bool) { return JVM{}, false })
}

func (h Host) glance(pid int) (JVM, bool) {
	libs, readable := h.libraries(pid)
	if readable && libs.kind == unknownProgram && !h.hasVMThread(pid) { // first: most processes are none
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

// Cgroup returns the path of the process's innermost cgroup, in the unified hierarchy if there is one. It is empty if
// it is not known.
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
