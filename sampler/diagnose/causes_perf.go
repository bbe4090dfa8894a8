//go:build linux

package diagnose

import (
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"goprof/process/procfs"
	"goprof/sampler"
)

// explainPerf finds out why perf_event may not be used (kernel/events/core.c, perf_event_open, perf_check_permission,
// perf_mmap; Documentation/admin-guide/perf-security.rst).
func (h Host) explainPerf(pid int, err error) Cause {
	var failed *sampler.PerfError
	call := ""
	if errors.As(err, &failed) {
		call = failed.Call
	}
	self, _ := h.status(0)
	filtered := self.Seccomp != 0
	switch {
	case errors.Is(err, unix.ESRCH):
		return h.explainGone(pid)
	case call == "mmap" && (errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOMEM)):
		return Cause{Class: Forbidden, Name: "perf-memory",
			Why:    "perf_event needs more locked memory than goprof may have (ulimit -l, kernel.perf_event_mlock_kb)",
			Remedy: h.sudo()}
	case filtered && (errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOSYS) ||
		errors.Is(err, unix.EACCES) && h.perfParanoid() < 2):
		return Cause{Class: Forbidden, Name: "perf-seccomp",
			Why: "a seccomp filter on goprof itself forbids perf_event_open, as that of containers does by default",
			Remedy: "docker run --security-opt seccomp=unconfined --cap-add PERFMON --cap-add SYS_PTRACE --pid container:NAME " +
				"..., or --engine ptrace"}
	case errors.Is(err, unix.ENOSYS), errors.Is(err, unix.ENOENT), errors.Is(err, unix.EOPNOTSUPP),
		errors.Is(err, unix.EINVAL), errors.Is(err, unix.E2BIG):
		return Cause{Name: "no-perf", Why: fmt.Sprintf("this kernel has no perf_event that copies stacks (%v)", err),
			Remedy: byPtrace(pid)}
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM):
		return h.perfForbidden(pid, self)
	case errors.Is(err, unix.EMFILE), errors.Is(err, unix.ENFILE):
		return Cause{Name: "fd-limit", Why: "goprof may not open more files", Remedy: "ulimit -n 65536; " + h.command()}
	}
	return Cause{Name: "perf-failed", Why: "perf_event cannot be used: " + err.Error(), Remedy: byPtrace(pid)}
}

// perfForbidden finds out what forbids it: the kernel's setting, or a rule about that process.
func (h Host) perfForbidden(pid int, self procfs.Status) Cause {
	capable := self.Can(unix.CAP_PERFMON) || self.Can(unix.CAP_SYS_ADMIN)
	c := Cause{Class: Forbidden, Name: "perf-paranoid", Remedy: h.perfRemedy()}
	switch level := h.perfParanoid(); {
	case level > 2 && !capable: // Debian's and Ubuntu's kernels
		c.Why = h.perfLevel() + ": only who has CAP_PERFMON may use perf_event"
	case !capable && pid != 0:
		// The rules are those of ptrace for processes that only read (PTRACE_MODE_READ_REALCREDS).
		if other := h.ExplainForbidden(pid); other.Name != securityModule && other.Name != yama {
			return other
		}
		c.Why = "goprof lacks CAP_PERFMON (" + h.perfLevel() + ")"
	case !capable:
		c.Why = "goprof lacks CAP_PERFMON (" + h.perfLevel() + ")"
	default:
		c.Name, c.Why, c.Remedy = "perf-module", "a security module (SELinux, AppArmor, lockdown) forbids perf_event",
			byPtrace(pid)
	}
	return c
}

// perfParanoid is kernel.perf_event_paranoid, 2 if it cannot be read: the kernel's default.
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

// perfRemedy lets perf_event see all. 1 is enough for processes of the same user.
func (h Host) perfRemedy() string { return h.sudo() + ", or sudo sysctl kernel.perf_event_paranoid=1" }

// byPtrace records with the other engine.
func byPtrace(pid int) string {
	if pid == 0 {
		return "goprof record --engine ptrace --pid PID"
	}
	return "goprof record --engine ptrace --pid " + strconv.Itoa(pid)
}

// checkPerf tries perf_event on the process that is meant, or on goprof itself. goprof works without perf_event, too:
// --engine ptrace is the default. A faked host cannot be tried.
func (h Host) checkPerf(r *Report, pid int) {
	if _, ok := h.read(filepath.Join(h.proc(), "sys/kernel/perf_event_paranoid"), 16); !ok {
		r.ok("perf", "not in this kernel, and not needed")
		return
	}
	if h.Proc != "" {
		r.ok("perf", "not needed (%s)", h.perfLevel())
		return
	}
	whose := ""
	if pid != 0 {
		whose = fmt.Sprintf(" for process %d", pid)
	}
	power, err := sampler.TryPerf(pid)
	switch {
	case err != nil:
		c := h.explainPerf(pid, err)
		r.Checks = append(r.Checks, Check{"perf", Info,
			fmt.Sprintf("not needed: recordings stop threads by ptrace. --engine perf would not work%s: %s",
				whose, c.Why), c.Remedy})
	case !power.Kernel:
		r.Checks = append(r.Checks, Check{"perf", Info,
			fmt.Sprintf("--engine perf works%s, but not for threads that are in the kernel (%s)", whose, h.perfLevel()),
			h.perfRemedy()})
	default:
		r.ok("perf", "--engine perf works%s", whose)
	}
}
