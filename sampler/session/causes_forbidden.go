//go:build linux

package session

import (
	"fmt"
	"os/user"
	"strconv"

	"golang.org/x/sys/unix"
)

// ExplainForbidden finds which rule forbids to look into a process, in the order in which
// the kernel asks (kernel/ptrace.c, __ptrace_may_access and ptrace_attach;
// security/commoncap.c, cap_ptrace_access_check; security/yama/yama_lsm.c).
func (h Host) ExplainForbidden(pid int) Cause {
	c := Cause{Class: Forbidden}
	self, ok := h.status(0)
	them, alive := h.status(pid)
	if !ok || !alive {
		if !alive {
			return h.explainGone(pid)
		}
		c.Name, c.Why, c.Remedy = "unknown", "not permitted", h.doctor(pid)
		return c
	}
	capable := self.can(unix.CAP_SYS_PTRACE)
	switch scope := h.yamaScope(); {
	case them.tracer != 0:
		h.traced(&c, them.tracer)
	case scope >= 3:
		c.Name, c.Why = "yama", "kernel.yama.ptrace_scope is 3: nobody may trace, and only a restart of the machine changes that"
		c.Remedy = "echo kernel.yama.ptrace_scope=0 | sudo tee /etc/sysctl.d/99-ptrace.conf; sudo reboot"
	case capable && h.differs(pid, "user") && !h.initial("user"):
		c.Name, c.Why = "user-namespace", "it is in another user namespace, where goprof's capabilities count for nothing"
		c.Remedy = h.onHost(pid, them)
	case capable && self.seccomp != 0:
		h.seccomp(&c, pid)
	case capable:
		c.Name, c.Why = "security-module", "goprof has CAP_SYS_PTRACE, so a security module (SELinux, AppArmor, BPF) must forbid it"
		c.Remedy = "sudo dmesg | grep -iE 'apparmor|avc|denied' | tail"
	case self.euid == 0:
		h.weakRoot(&c, pid, self, them)
	case self.uid != them.uid || self.uid != them.euid || self.uid != them.suid:
		c.Name, c.Why = "other-user", fmt.Sprintf("it belongs to user %s, and goprof runs as user %s without CAP_SYS_PTRACE", userName(them.euid), userName(self.euid))
		c.Remedy = h.sudo()
	case h.differs(pid, "user"):
		c.Name, c.Why, c.Remedy = "user-namespace", "it is in another user namespace", h.sudo()
	case them.permitted&^self.permitted != 0:
		c.Name, c.Why = "more-capabilities", fmt.Sprintf("it has capabilities (%#x) that goprof lacks", them.permitted&^self.permitted)
		c.Remedy = h.sudo()
	case h.notDumpable(pid, them):
		c.Name, c.Why = "not-dumpable", "it is not dumpable: it changed its user, has file capabilities, or asked for it with prctl(PR_SET_DUMPABLE, 0)"
		c.Remedy = h.sudo()
	case scope > 0:
		c.Name, c.Why = "yama", fmt.Sprintf("kernel.yama.ptrace_scope is %d: %s", scope, yamaMeaning(scope))
		c.Remedy = h.sudo() + ", or sudo sysctl kernel.yama.ptrace_scope=0"
	case self.gid != them.gid:
		c.Name, c.Why = "other-group", fmt.Sprintf("it runs with group %d, goprof with %d", them.gid, self.gid)
		c.Remedy = h.sudo()
	case self.seccomp != 0:
		h.seccomp(&c, pid)
	default:
		c.Name, c.Why = "security-module", "it is ours, yet a security module (SELinux, AppArmor, BPF) or a setting of its own forbids it"
		c.Remedy = h.sudo()
	}
	return c
}

func yamaMeaning(scope int) string {
	if scope == 1 {
		return "only a parent may trace its children"
	}
	return "only who has CAP_SYS_PTRACE may trace"
}

func (h Host) traced(c *Cause, tracer int) {
	c.Name = "traced"
	name := "?"
	if t, ok := h.status(tracer); ok {
		name = t.name
	}
	c.Why = fmt.Sprintf("process %d (%s) traces it already, and only one can", tracer, name)
	c.Remedy = "kill " + strconv.Itoa(tracer) + "    (or quit that debugger)"
}

// seccomp tells of a filter on ourselves, which may forbid the calls whatever we are.
func (h Host) seccomp(c *Cause, pid int) {
	c.Name, c.Why = "seccomp", "a seccomp filter on goprof itself forbids ptrace or process_vm_readv"
	c.Remedy = "docker run --security-opt seccomp=unconfined --cap-add SYS_PTRACE --pid container:NAME ... (Kubernetes: kubectl debug POD --image IMAGE --profile=sysadmin --target CONTAINER)"
}

// weakRoot is root without CAP_SYS_PTRACE, as in a container.
func (h Host) weakRoot(c *Cause, pid int, self, them procStatus) {
	c.Name = "no-capability"
	c.Why = "goprof is root but lacks CAP_SYS_PTRACE"
	if self.bounding&(1<<unix.CAP_SYS_PTRACE) == 0 {
		c.Why += ", as in a container or a unit with CapabilityBoundingSet"
		c.Remedy = "docker run --cap-add SYS_PTRACE --pid container:NAME ... (Kubernetes: kubectl debug POD --image IMAGE --profile=sysadmin --target CONTAINER)"
		return
	}
	c.Remedy = h.sudo()
}

// onHost is what to do from inside a container that cannot do it.
func (h Host) onHost(pid int, them procStatus) string {
	return "goprof list, then goprof record --pid PID, both as root of the host"
}

// notDumpable: the files of such a process belong to root (fs/proc/base.c, task_dump_owner).
func (h Host) notDumpable(pid int, them procStatus) bool {
	uid, ok := h.fileOwner(h.file(pid, "status"))
	return ok && uid != them.euid
}

// sudo is the same command as root.
func (h Host) sudo() string { return "sudo " + h.command() }

// userName is a user's number, with the name that this host gives it.
func userName(uid int) string {
	if name := userLogin(uid); name != strconv.Itoa(uid) {
		return fmt.Sprintf("%d (%s)", uid, name)
	}
	return strconv.Itoa(uid)
}

// userLogin is the name that this host gives a user's number, else the number.
func userLogin(uid int) string {
	if u, err := user.LookupId(strconv.Itoa(uid)); err == nil {
		return u.Username
	}
	return strconv.Itoa(uid)
}
