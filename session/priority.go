//go:build linux

package session

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"

	"golang.org/x/sys/unix"

	"goprof/process/procfs"
	"goprof/sampler"
)

// withoutPriority is NoPriority, tried once.
var withoutPriority = sync.OnceValues(NoPriority)

// withoutVisits returns why goprof did not visit the CPUs of the program, and the remedy. Both are empty if there is no
// reason. noPriority returns why goprof has no real-time priority.
func withoutVisits(n sampler.NoVisits, noPriority func() (why, cure string)) (why, cure string) {
	switch n {
	case sampler.NoPreempters:
		return noPriority()
	case sampler.VisitorTraced:
		return "goprof is traced itself", "goprof without strace or gdb"
	case sampler.OtherCPUs:
		return "goprof may not use all CPUs of the program", "taskset --all-tasks --cpu-list 0-4095 goprof ..."
	case sampler.OneCPU:
		return "the program may use one CPU only, where goprof takes turns with it", ""
	case sampler.MetNobody:
		return "goprof came to the program's CPUs too late, as in an emulated machine", ""
	case sampler.NoSchedstat:
		return "the kernel lacks CONFIG_SCHED_INFO", ""
	}
	return "", ""
}

// NoPriority tries to get real-time priority. If goprof does not get it, it returns why, and the remedy. Otherwise both
// are empty.
func NoPriority() (why, cure string) {
	b, _ := procfs.Read("/proc/self/status", procfs.MaxFile)
	self := procfs.ParseStatus(b)
	var limit unix.Rlimit
	unix.Getrlimit(unix.RLIMIT_RTPRIO, &limit)
	f := priorityFacts{err: priorityError(), capable: self.Can(unix.CAP_SYS_NICE), root: self.EUID == 0,
		limit: limit.Cur, filtered: schedFiltered(), inUsers: inUserNamespace()}
	f.group, f.file = procfs.NoRealTime()
	return whyNoPriority(f)
}

// lacksPriority returns why goprof has no real-time priority, and the remedy. Both are empty if it may have it.
func lacksPriority() (why, cure string) {
	if priorityError() == nil {
		return "", ""
	}
	return withoutPriority()
}

// priorityFacts are what the answer depends on.
type priorityFacts struct {
	err           error // of the attempt
	capable, root bool
	limit         uint64 // RLIMIT_RTPRIO
	filtered      bool   // a seccomp filter answers instead of the kernel
	inUsers       bool   // goprof is in a user namespace, as in a container that an ordinary user has started
	group         procfs.Group
	file          string // the file that gives goprof's cgroup no real-time; empty if no file does
}

// whyNoPriority checks the rules of kernel/sched/syscalls.c (__sched_setscheduler, user_check_sched_setscheduler) in
// turn.
func whyNoPriority(f priorityFacts) (why, cure string) {
	switch {
	case f.err == nil:
		return "", ""
	case f.filtered:
		return "a seccomp filter on goprof forbids it real-time priority",
			"docker run --security-opt seccomp=unconfined ..."
	case f.inUsers: // capabilities of a namespace do not count (capable, not ns_capable)
		return "goprof has no real-time priority: it is in a user namespace, as in a container without root",
			"sudo goprof ... on the host"
	case !f.capable && f.root:
		return "goprof has no real-time priority: it lacks CAP_SYS_NICE", "docker run --cap-add SYS_NICE ..."
	case !f.capable && f.limit == 0:
		return "goprof has no real-time priority: it lacks CAP_SYS_NICE, and RLIMIT_RTPRIO is 0",
			"sudo goprof ..., or prlimit --rtprio=3 goprof ..."
	case f.file != "":
		return "goprof's cgroup has no real-time: " + f.file + " is 0", giveRealTime(f.group, f.file)
	}
	return fmt.Sprintf("the kernel refuses goprof real-time priority (%v)", f.err), ""
}

// inUserNamespace reports whether this is certainly not the first user namespace (include/linux/proc_ns.h,
// PROC_USER_INIT_INO).
func inUserNamespace() bool {
	link, err := os.Readlink("/proc/self/ns/user")
	return err == nil && link != "user:[4026531837]"
}

// priorityError is tryPriority, once.
var priorityError = sync.OnceValue(tryPriority)

// tryPriority gives an OS thread the lowest real-time priority, and takes it away again.
func tryPriority() error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before, err := unix.SchedGetAttr(0, 0)
	if err != nil {
		return err
	}
	if err := unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: 1,
		Flags: resetOnFork}, 0); err != nil {
		return err
	}
	return unix.SchedSetAttr(0, before, 0)
}

// schedFiltered reports whether a seccomp filter forbids the system call. It makes the call with arguments that the
// kernel refuses with EINVAL before it checks any right (kernel/sched/syscalls.c, sched_setattr).
func schedFiltered() bool {
	_, _, e := unix.RawSyscall(unix.SYS_SCHED_SETATTR, 0, 0, 0)
	return e == unix.EPERM || e == unix.EACCES || e == unix.ENOSYS
}

// giveRealTime returns the command that gives real-time to a control group of version 1 (CONFIG_RT_GROUP_SCHED). A
// group cannot have more than its parent, and the group of a container runtime has none (kernel/sched/rt.c,
// tg_rt_schedulable). None of these files can be written from within the container.
func giveRealTime(group procfs.Group, file string) string {
	switch {
	case procfs.ContainerOf([]string{group.Path}).ID != "":
		return "echo 100000 >/sys/fs/cgroup/cpu" + filepath.Join(filepath.Dir(group.Path), procfs.RealTimeFile) +
			" on the host, then docker run --cpu-rt-runtime=95000 --cap-add SYS_NICE ..."
	case group.Path == "/": // usually a container's own view
		return "goprof on the host"
	}
	return "echo 95000 >" + file
}
