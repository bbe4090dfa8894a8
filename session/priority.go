//go:build linux

package session

import (
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"goprof/process/procfs"
)

// withoutPriority says why goprof cannot take a CPU when it wants to, and what mends that. It tries to get real-time
// priority, once.
var withoutPriority = sync.OnceValues(func() (why, cure string) {
	b, _ := procfs.Read("/proc/self/status", procfs.MaxFile)
	self := procfs.ParseStatus(b)
	var limit unix.Rlimit
	unix.Getrlimit(unix.RLIMIT_RTPRIO, &limit)
	return whyNoPriority(priorityFacts{err: priorityError(), capable: self.Can(unix.CAP_SYS_NICE), root: self.EUID == 0,
		limit: limit.Cur, filtered: schedFiltered(), group: groupWithoutTime("/sys/fs/cgroup", procfs.CgroupPaths)})
})

// lacksPriority is withoutPriority where goprof may not have real-time priority; else both are empty.
func lacksPriority() (why, cure string) {
	if priorityError() == nil {
		return "", ""
	}
	return withoutPriority()
}

// priorityFacts are what the answer depends on.
type priorityFacts struct {
	err           error // of the trial
	capable, root bool
	limit         uint64 // RLIMIT_RTPRIO
	filtered      bool   // a seccomp filter answers in the kernel's place
	group         string // the file that gives goprof's cgroup no real-time; empty if there is none
}

// whyNoPriority goes through the rules of kernel/sched/syscalls.c (__sched_setscheduler,
// user_check_sched_setscheduler).
func whyNoPriority(f priorityFacts) (why, cure string) {
	switch {
	case f.err == nil:
		return "goprof may not use all CPUs of the program", "taskset --all-tasks --cpu-list 0-4095 goprof ..."
	case f.filtered:
		return "a seccomp filter on goprof forbids it real-time priority",
			"docker run --security-opt seccomp=unconfined ..."
	case !f.capable && f.root:
		return "goprof has no real-time priority: it lacks CAP_SYS_NICE", "docker run --cap-add SYS_NICE ..."
	case !f.capable && f.limit == 0:
		return "goprof has no real-time priority: it lacks CAP_SYS_NICE, and RLIMIT_RTPRIO is 0",
			"sudo goprof ..., or prlimit --rtprio=3 goprof ..."
	case f.group != "":
		return "goprof's cgroup has no real-time: " + f.group + " is 0", "echo 100000 > " + f.group
	}
	return fmt.Sprintf("the kernel refuses goprof real-time priority (%v)", f.err), ""
}

// priorityError is tryPriority, once.
var priorityError = sync.OnceValue(tryPriority)

// tryPriority asks for the lowest real-time priority in an OS thread, and gives it back.
func tryPriority() error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before, err := unix.SchedGetAttr(0, 0)
	if err != nil {
		return err
	}
	const resetOnFork = 1
	if err := unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: 1,
		Flags: resetOnFork}, 0); err != nil {
		return err
	}
	return unix.SchedSetAttr(0, before, 0)
}

// schedFiltered asks with arguments that the kernel refuses with EINVAL, before it asks for any right
// (kernel/sched/syscalls.c, sched_setattr).
func schedFiltered() bool {
	_, _, e := unix.RawSyscall(unix.SYS_SCHED_SETATTR, 0, 0, 0)
	return e == unix.EPERM || e == unix.EACCES || e == unix.ENOSYS
}

// groupWithoutTime is the file that says that goprof's cgroup has no time for real-time threads (cgroup v1 with
// CONFIG_RT_GROUP_SCHED): tg->rt_bandwidth.rt_runtime.
func groupWithoutTime(root string, paths func([]byte) []string) string {
	b, _ := procfs.Read("/proc/self/cgroup", procfs.MaxFile)
	for _, path := range append(paths(b), "/") { // in a container its own group is the root of what is mounted
		file := filepath.Join(root, "cpu", path, "cpu.rt_runtime_us")
		if text, err := procfs.Read(file, 32); err == nil && strings.TrimSpace(string(text)) == "0" {
			return file
		}
	}
	return ""
}
