//go:build linux

package diagnose

import (
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"goprof/profile"
	"goprof/sampler/events"
	"goprof/sampler/guard"
	"goprof/sampler/perf"
	"goprof/sampler/ring"
)

// explainPerf finds out why perf_event is refused (kernel/events/core.c, perf_event_open, perf_check_permission,
// perf_mmap; Documentation/admin-guide/perf-security.rst). It names a cause only if there is evidence of it.
func (h Host) explainPerf(pid int, err error) Cause {
	call := ""
	if failed, ok := errors.AsType[*ring.Error](err); ok {
		call = failed.Call
	}
	denied := errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES)
	switch {
	case errors.Is(err, ring.ErrTimeNamespace):
		return Cause{Name: "time-namespace",
			Why:    "goprof is in a time namespace, and what the kernel writes down has the machine's own clock",
			Remedy: byPtrace(pid) + ", or goprof outside of that namespace"}
	case errors.Is(err, unix.ESRCH):
		return h.explainGone(pid)
	case errors.Is(err, unix.EMFILE), errors.Is(err, unix.ENFILE):
		return h.fewFiles()
	case errors.Is(err, ring.ErrFull):
		return Cause{Name: "perf-rings", Remedy: byPtrace(pid),
			Why: fmt.Sprintf("the rings of perf events would lock more than %s, which is all that goprof allows them",
				megabytes(ring.MostLocked()))}
	case call == "mmap" && (denied || errors.Is(err, unix.ENOMEM)):
		return Cause{Class: Forbidden, Name: "perf-memory",
			Why:    "perf_event needs more locked memory than goprof may have (ulimit -l, kernel.perf_event_mlock_kb)",
			Remedy: h.toHave("IPC_LOCK") + ", or sudo sysctl kernel.perf_event_mlock_kb=2048"}
	case call == "bpf":
		return h.explainBPF(err)
	case (denied || errors.Is(err, unix.ENOSYS)) && h.perfFiltered():
		return Cause{Class: Forbidden, Name: "perf-seccomp",
			Why: "a seccomp filter on goprof itself forbids perf_event_open, as that of containers does by default",
			Remedy: "docker run --security-opt seccomp=unconfined --cap-add PERFMON --cap-add BPF --cap-add SYS_PTRACE " +
				"--pid=host ..., or --engine ptrace"}
	case denied && call == events.ProbeCall:
		return h.probesForbidden(err)
	case denied:
		return h.perfForbidden(pid, err)
	case errors.Is(err, unix.ENOSYS), errors.Is(err, unix.ENOENT), errors.Is(err, unix.EOPNOTSUPP),
		errors.Is(err, unix.EINVAL), errors.Is(err, unix.E2BIG):
		return Cause{Name: "no-perf", Why: fmt.Sprintf("this kernel has no perf_event that copies stacks (%v)", err),
			Remedy: byPtrace(pid)}
	}
	return Cause{Name: "perf-failed", Why: "perf_event cannot be used: " + err.Error(), Remedy: byPtrace(pid)}
}

// perfFiltered tests whether a seccomp filter forbids the call. (goprof's own filter, package guard, permits it.) For a
// faked host it returns false.
func (h Host) perfFiltered() bool {
	if h.Proc == "" {
		return ring.Filtered()
	}
	self, _ := h.status(0)
	return self.Seccomp != 0
}

// perfForbidden finds out what forbids perf_event: the kernel's setting, or a rule about the process.
func (h Host) perfForbidden(pid int, err error) Cause {
	self, _ := h.status(0)
	admin := self.Can(unix.CAP_SYS_ADMIN)
	capable := admin || self.Can(unix.CAP_PERFMON)
	switch level := h.perfParanoid(); {
	case level > 2 && !admin && h.perfForbidsOwn(): // Debian's and Ubuntu's kernels (sampler/guard/trial.go)
		return Cause{Class: Forbidden, Name: "perf-paranoid", Remedy: h.perfRemedy(2),
			Why: h.perfLevel() + ", and while it is above 2 this kernel wants CAP_SYS_ADMIN, which goprof lacks"}
	case !capable && pid != 0:
		// The rules are those of ptrace for processes that only read (PTRACE_MODE_READ_REALCREDS).
		if other := h.ExplainForbidden(pid); other.Name != securityModule && other.Name != yama {
			return other
		}
	}
	if !capable {
		return Cause{Class: Forbidden, Name: "perf-paranoid", Remedy: h.perfRemedy(1),
			Why: "goprof lacks CAP_PERFMON (" + h.perfLevel() + ")"}
	}
	return h.refused("perf_event", err, byPtrace(pid))
}

// perfForbidsOwn tries perf_event on goprof itself, which no rule about processes forbids.
func (h Host) perfForbidsOwn() bool {
	if h.Proc != "" {
		return true
	}
	_, err := ring.Try(0)
	return err != nil
}

// refused returns the cause of a refusal that no known rule explains. It names a security module only if one is active.
func (h Host) refused(what string, err error, remedy string) Cause {
	if module := h.enforcing(); module != "" {
		return Cause{Class: Forbidden, Name: "perf-module", Remedy: "sudo dmesg | grep -iE 'avc|denied|lockdown' | tail",
			Why: fmt.Sprintf("the kernel refuses %s although goprof has the right to it; %s, which may be the cause", what,
				module)}
	}
	return Cause{Class: Forbidden, Name: "perf-refused", Remedy: remedy,
		Why: fmt.Sprintf("the kernel refuses %s by no rule that goprof knows (%s; %s)", what,
			strings.TrimPrefix(err.Error(), "sampler: "), h.perfLevel())}
}

// enforcing names the active security modules besides the kernel's usual rules. It returns "" if none is known.
func (h Host) enforcing() string {
	if h.Proc == "" {
		if b, ok := h.read("/sys/fs/selinux/enforce", 4); ok && strings.TrimSpace(string(b)) == "1" {
			return "SELinux enforces a policy here"
		}
		if b, ok := h.read("/sys/kernel/security/lockdown", 256); ok && !strings.Contains(string(b), "[none]") {
			return "the kernel is locked down (" + strings.TrimSpace(string(b)) + ")"
		}
	}
	if b, _ := h.read(h.file(0, "attr/current"), 4096); strings.Contains(string(b), "(enforce)") {
		return "goprof runs under the AppArmor profile " + strings.ToValidUTF8(strings.TrimRight(string(b), "\x00\n"), "?")
	}
	return ""
}

// perfParanoid returns kernel.perf_event_paranoid, or 2, the kernel's default, if it cannot be read.
func (h Host) perfParanoid() int {
	b, ok := h.read(filepath.Join(h.proc(), "sys/kernel/perf_event_paranoid"), 16)
	if level, err := strconv.Atoi(strings.TrimSpace(string(b))); ok && err == nil {
		return level
	}
	return 2
}

func (h Host) perfLevel() string {
	return fmt.Sprintf("kernel.perf_event_paranoid is %d", h.perfParanoid())
}

// perfRemedy returns a command that lets goprof use perf_event. Level 2 is enough with CAP_PERFMON, level 1 for
// processes of the same user.
func (h Host) perfRemedy(level int) string {
	set := "sysctl kernel.perf_event_paranoid="
	self, _ := h.status(0)
	switch {
	case self.Can(unix.CAP_PERFMON):
		return set + "2"
	case self.EUID == 0: // root in a container, or limited by CapabilityBoundingSet
		return "on the host: " + set + strconv.Itoa(level) + "; and docker run --cap-add PERFMON --cap-add BPF"
	}
	return h.sudo() + ", or sudo " + set + "1"
}

// byPtrace returns the command that records with the ptrace engine.
func byPtrace(pid int) string {
	if pid == 0 {
		return "goprof record --engine ptrace --pid PID"
	}
	return "goprof record --engine ptrace --pid " + strconv.Itoa(pid)
}

// checkPerf tries perf_event on a process, or on goprof itself, with the rights that a recording keeps.
func (h Host) checkPerf(r *Report, n *need, pid int) {
	if _, ok := h.read(filepath.Join(h.proc(), "sys/kernel/perf_event_paranoid"), 16); !ok {
		r.info(n.name, "", "not in this kernel: no %s", n.lost)
		return
	}
	whose := ""
	if pid != 0 {
		whose = fmt.Sprintf(" for process %d", pid)
	}
	cause, admin := h.tryPerf(pid)
	switch {
	case cause != nil:
		r.info(n.name, cause.Remedy, "not needed: recordings stop threads by ptrace. --engine perf would not work%s: %s",
			whose, cause.Why)
	case admin:
		kept := h.AdminNote()
		r.Checks = append(r.Checks, Check{n.name, OK, fmt.Sprintf("--engine perf works%s; %s", whose, kept.Text),
			kept.Remedy})
	default:
		r.ok(n.name, "--engine perf works%s", whose)
	}
}

// tryPerf returns why the perf engine does not work for a process, or nil if it works. It uses the rights that a
// recording keeps, and reports whether CAP_SYS_ADMIN is one of them.
func (h Host) tryPerf(pid int) (cause *Cause, admin bool) {
	admin = guard.With(guard.ToRecord, func() {
		if err := perf.TryWide(pid); err != nil {
			cause = new(h.Explain(pid, err))
		}
	})
	return cause, admin
}

// AdminNote says that recordings keep CAP_SYS_ADMIN, why, and how to avoid that (guard.Given.AdminForPerf).
func (h Host) AdminNote() profile.Note {
	return profile.Note{Name: "rights", Remedy: h.perfRemedy(2), Text: "recordings keep CAP_SYS_ADMIN: " + h.perfLevel() +
		", and while it is above 2 this kernel gives perf_event to no one else"}
}
