//go:build linux

package diagnose

import (
	"fmt"
	"os"
	"os/user"
	"path"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"

	"goprof/process/procfs"
)

// ExplainForbidden finds out which rule forbids goprof to read a process (kernel/ptrace.c, __ptrace_may_access;
// security/commoncap.c, cap_ptrace_access_check; security/yama/yama_lsm.c). Most rules apply only if goprof lacks
// CAP_SYS_PTRACE. The others always apply.
func (h Host) ExplainForbidden(pid int) Cause {
	them, alive := h.status(pid)
	if !alive {
		return h.explainGone(pid)
	}
	self, ok := h.status(0)
	if !ok {
		return Cause{Class: Forbidden, Name: "not-permitted", Why: "the kernel does not permit it", Remedy: h.doctor(pid)}
	}
	rule, asksCap := h.rule(pid, self, them)
	capable := self.Can(unix.CAP_SYS_PTRACE)
	switch {
	case h.yamaScope() >= 3:
		return yamaForbids()
	case capable && h.nested("user") && h.namespace(pid, "user") != h.namespace(0, "user"): // or unreadable
		return Cause{Class: Forbidden, Name: "user-namespace",
			Why:    "it is in another user namespace, where goprof's capabilities count for nothing",
			Remedy: "goprof list, then goprof record --pid PID, both as root of the host"}
	case asksCap && !capable && self.EUID == 0:
		return h.weakRoot(self, rule)
	case asksCap && !capable:
		return rule
	case self.Seccomp != 0 && h.callsBlocked():
		return h.seccomp()
	}
	if tracer := h.tracerOf(pid); tracer != 0 {
		return h.traced(tracer)
	}
	if capable && h.ownerOnly(self, them) {
		return Cause{Class: Forbidden, Name: "owner-only", Remedy: h.sudo() + ", or sudo setcap " +
			"cap_sys_ptrace,cap_dac_read_search+ep $(which goprof)",
			Why: fmt.Sprintf("files of /proc/%d that this needs (mode 0400) are only for user %s, or "+
				"CAP_DAC_READ_SEARCH: CAP_SYS_PTRACE does not open them", pid, userName(them.EUID))}
	}
	if name, no := h.seemsNoJVM(pid); no {
		return Cause{Class: NotJVM, Name: notJava, Remedy: h.list(),
			Why: fmt.Sprintf("it seems to run no JVM (%s): none of its threads has the name of a JVM's thread. The "+
				"kernel forbids a closer look", name)}
	}
	return Cause{Class: Forbidden, Name: securityModule,
		Why: "the kernel forbids it, by no rule that goprof knows; the cause may be a security module " +
			"(SELinux, AppArmor, BPF) or a sandbox",
		Remedy: "sudo dmesg | grep -iE 'apparmor|avc|denied' | tail"}
}

// ownerOnly reports whether file modes in /proc/PID keep goprof out: syscall has 0400, mem 0600 (fs/proc/base.c,
// tgid_base_stuff). CAP_SYS_PTRACE passes the kernel's later check, but not the check of the modes.
func (h Host) ownerOnly(self, them procfs.Status) bool {
	return self.EUID != them.EUID && !self.Can(unix.CAP_DAC_READ_SEARCH) && !self.Can(unix.CAP_DAC_OVERRIDE)
}

// seemsNoJVM reports whether an unreadable process is probably not a JVM. It uses only the names of the threads, which
// every user may read.
func (h Host) seemsNoJVM(pid int) (name string, no bool) {
	jvm, comm, ok := h.visible(pid)
	if !ok {
		return "", false
	}
	argv := h.commandLine(pid)
	launched := comm == "java" || len(argv) > 0 && path.Base(argv[0]) == "java"
	return comm, !launched && (jvm.Threads < 2 || !h.hasVMThread(pid))
}

// rule returns the first rule that only CAP_SYS_PTRACE overrides, in the kernel's order.
func (h Host) rule(pid int, self, them procfs.Status) (c Cause, applies bool) {
	c = Cause{Class: Forbidden, Remedy: h.sudo()}
	scope := h.yamaScope()
	switch {
	case self.UID != them.UID || self.UID != them.EUID || self.UID != them.SUID:
		c.Name, c.Why = "other-user", fmt.Sprintf("it belongs to user %s, and goprof runs as user %s without CAP_SYS_PTRACE",
			userName(them.EUID), userName(self.EUID))
	case self.GID != them.GID || self.GID != them.EGID || self.GID != them.SGID:
		c.Name, c.Why = "other-group", fmt.Sprintf("it runs with group %d, and goprof with group %d without CAP_SYS_PTRACE",
			them.EGID, self.GID)
	case h.notDumpable(pid, them):
		c.Name, c.Why = "not-dumpable", "it is not dumpable: it changed its user, has file capabilities, or asked for it "+
			"with prctl(PR_SET_DUMPABLE, 0)"
	case h.differs(pid, "user"):
		c.Name, c.Why = "user-namespace", "it is in another user namespace"
	case them.Permitted&^self.Permitted != 0:
		c.Name, c.Why = "more-capabilities", fmt.Sprintf("it has capabilities that goprof lacks (%#x, see capsh --decode)",
			them.Permitted&^self.Permitted)
	case scope > 0:
		c.Name, c.Why = yama, fmt.Sprintf("kernel.yama.ptrace_scope is %d: %s", scope, yamaMeaning(scope))
		c.Remedy = h.sudo() + ", or sudo sysctl kernel.yama.ptrace_scope=0"
	default:
		return Cause{}, false
	}
	return c, true
}

// yamaForbids is the cause for ptrace_scope 3, which applies to every process.
func yamaForbids() Cause {
	return Cause{Class: Forbidden, Name: yama,
		Why:    "kernel.yama.ptrace_scope is 3: no process may trace, and only a restart of the machine changes that",
		Remedy: "echo kernel.yama.ptrace_scope=0 | sudo tee /etc/sysctl.d/99-ptrace.conf; sudo reboot"}
}

func yamaMeaning(scope int) string {
	if scope == 1 {
		return "only a parent may trace its children"
	}
	return "only programs with CAP_SYS_PTRACE may trace"
}

func (h Host) traced(tracer int) Cause {
	name := ""
	if t, ok := h.status(tracer); ok {
		name = " (" + t.Name + ")"
	}
	return Cause{Class: Forbidden, Name: "traced",
		Why:    fmt.Sprintf("process %d%s traces it already, and only one can: quit or end that one", tracer, name),
		Remedy: "kill " + strconv.Itoa(tracer)}
}

// Traced returns ErrTraced if other processes trace every thread of a process, so that no look can succeed. A tracer of
// some threads (strace without -f) leaves the other threads to goprof. Another goprof traces only one thread at a time.
func (h Host) Traced(pid int) error {
	tids := h.threads(pid)
	for _, tid := range tids {
		b, ok := h.read(h.file(pid, "task/"+tid+"/status"), procfs.MaxFile)
		if ok && procfs.ParseStatus(b).Tracer == 0 {
			return nil
		}
	}
	if len(tids) == 0 {
		return nil // the process ended or is hidden, and other causes say so
	}
	return ErrTraced
}

// tracerOf returns a process that traces the process's first threads, or 0 if there is none. Each thread has its own
// tracer.
func (h Host) tracerOf(pid int) int {
	if s, ok := h.status(pid); ok && s.Tracer != 0 {
		return s.Tracer
	}
	for _, tid := range h.threads(pid) {
		if b, ok := h.read(h.file(pid, "task/"+tid+"/status"), procfs.MaxFile); ok {
			if s := procfs.ParseStatus(b); s.Tracer != 0 {
				return s.Tracer
			}
		}
	}
	return 0
}

// Commands that start goprof in a container beside the JVM's container. Docker's default filter permits ptrace if the
// container has CAP_SYS_PTRACE (moby, profiles/seccomp).
const (
	inContainer   = "docker run --cap-add SYS_PTRACE --pid container:NAME ... " + inPod
	withoutFilter = "docker run --security-opt seccomp=unconfined --cap-add SYS_PTRACE --pid container:NAME ... " + inPod
	inPod         = "(Kubernetes: kubectl debug POD --image IMAGE --profile=sysadmin --target CONTAINER)"
)

// seccomp reports a filter on goprof itself. The filter forbids the calls whatever rights goprof has.
func (h Host) seccomp() Cause {
	return Cause{Class: Forbidden, Name: "seccomp",
		Why:    "a seccomp filter on goprof itself forbids ptrace or process_vm_readv",
		Remedy: withoutFilter}
}

// callsBlocked tries whether goprof's system calls reach the kernel, because a filter may concern other calls. It reads
// only goprof itself. It cannot test a faked host.
func (h Host) callsBlocked() bool { return h.Proc != "" || ptraceBlocked() || readBlocked() }

// ptraceBlocked calls ptrace for a process that does not exist. The kernel answers ESRCH. Any other answer comes from a
// filter.
func ptraceBlocked() bool {
	_, _, e := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_GETEVENTMSG, uintptr(os.Getpid()), 0, 0, 0, 0)
	return e == unix.EPERM || e == unix.EACCES || e == unix.ENOSYS
}

// readBlocked reads probe. A package variable does not move.
var probe, probed byte

// readBlocked tries to read a byte of goprof's own memory.
func readBlocked() bool {
	local := []unix.Iovec{{Base: &probed, Len: 1}}
	remote := []unix.RemoteIovec{{Base: uintptr(unsafe.Pointer(&probe)), Len: 1}}
	_, err := unix.ProcessVMReadv(os.Getpid(), local, remote, 0)
	return err != nil
}

// weakRoot is the cause for root without CAP_SYS_PTRACE, as in a container.
func (h Host) weakRoot(self procfs.Status, rule Cause) Cause {
	c := Cause{Class: Forbidden, Name: "no-capability", Why: "goprof is root but lacks CAP_SYS_PTRACE", Remedy: h.sudo()}
	if self.Bounding&(1<<unix.CAP_SYS_PTRACE) == 0 {
		c.Why += ", as in a container or a unit with CapabilityBoundingSet"
		c.Remedy = inContainer
	}
	if rule.Name == yama {
		c.Why += "; " + rule.Why
	}
	return c
}

// notDumpable reports whether a process is not dumpable. Its files belong to root then (fs/proc/base.c,
// task_dump_owner).
func (h Host) notDumpable(pid int, them procfs.Status) bool {
	uid, ok := h.fileOwner(h.file(pid, "status"))
	return ok && uid != them.EUID
}

// sudo returns goprof's own command line, run as root.
func (h Host) sudo() string { return "sudo " + h.command() }

// userName returns a user's number with the name on this host.
func userName(uid int) string {
	if name := userLogin(uid); name != strconv.Itoa(uid) {
		return fmt.Sprintf("%d (%s)", uid, name)
	}
	return strconv.Itoa(uid)
}

// userLogin returns a user's name on this host, or the number if there is none.
func userLogin(uid int) string {
	if u, err := user.LookupId(strconv.Itoa(uid)); err == nil {
		return u.Username
	}
	return strconv.Itoa(uid)
}
