//go:build linux

package diagnose

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"goprof/process/procfs"
	"goprof/sampler/bpf"
	"goprof/sampler/events"
	"goprof/sampler/guard"
	"goprof/session"
)

// explainBPF finds out why the kernel refuses a BPF program or map (kernel/bpf/syscall.c, __sys_bpf, bpf_prog_load,
// bpf_charge_memlock).
func (h Host) explainBPF(err error) Cause {
	self, _ := h.status(0)
	limit, limited := h.lockedMemory()
	absent := errors.Is(err, unix.ENOSYS)
	switch {
	case absent && self.Seccomp == 0:
		return Cause{Name: "no-bpf", Why: "this kernel has no call bpf (CONFIG_BPF_SYSCALL)"}
	case !absent && !errors.Is(err, unix.EPERM) && !errors.Is(err, unix.EACCES):
		why := fmt.Sprintf("this kernel takes no BPF program that goprof needs (%v)", cmp.Or(errnoOf(err), err))
		if needBPF.none(h.release()) {
			why += ": " + needBPF.missing("programs of that kind")
		}
		return Cause{Name: "no-bpf", Why: why}
	case !absent && !self.Can(unix.CAP_SYS_ADMIN) && !(self.Can(unix.CAP_BPF) && self.Can(unix.CAP_PERFMON)):
		return Cause{Class: Forbidden, Name: "bpf-capability", Remedy: h.toHave("BPF", "PERFMON"),
			Why: "BPF programs need CAP_BPF and CAP_PERFMON, which goprof lacks"}
	case absent || h.bpfFiltered():
		return Cause{Class: Forbidden, Name: "bpf-seccomp", Remedy: "docker run --security-opt seccomp=unconfined ...",
			Why: "a seccomp filter on goprof itself forbids the call bpf"}
	case limited:
		return Cause{Class: Forbidden, Name: "bpf-memory",
			Why: fmt.Sprintf("before Linux %s the memory of BPF programs counts as locked memory, of which goprof may have "+
				"%d KB (RLIMIT_MEMLOCK) and may not raise that (CAP_SYS_RESOURCE)", needBPFMemory.since, limit>>10),
			Remedy: h.toHave("SYS_RESOURCE") + ", or first: sudo prlimit --pid $$ --memlock=unlimited"}
	}
	return h.refused("BPF programs", err, "sudo dmesg | tail")
}

// errnoOf returns the kernel's error number, or nil if the error did not come from the kernel.
func errnoOf(err error) error {
	if e := unix.Errno(0); errors.As(err, &e) {
		return e
	}
	return nil
}

// bpfFiltered tests whether a seccomp filter forbids the call. For a faked host it returns false.
func (h Host) bpfFiltered() bool {
	if h.Proc == "" {
		return bpf.Filtered()
	}
	self, _ := h.status(0)
	return self.Seccomp != 0
}

// lockedMemory returns the limit of locked memory for BPF programs, if there is one.
func (h Host) lockedMemory() (limit uint64, limited bool) {
	if !needBPFMemory.none(h.release()) {
		return 0, false
	}
	limits, _ := h.read(h.file(0, "limits"), procfs.MaxFile)
	for line := range strings.Lines(string(limits)) {
		if rest, ok := strings.CutPrefix(line, "Max locked memory "); ok { // soft, hard, unit (fs/proc/base.c)
			soft, _, _ := strings.Cut(strings.TrimLeft(rest, " "), " ")
			limit, err := strconv.ParseUint(soft, 10, 64)
			return limit, err == nil // or "unlimited"
		}
	}
	return 0, false
}

// probesForbidden finds out why the kernel refuses a probe (kernel/events/core.c, perf_uprobe_event_init).
func (h Host) probesForbidden(err error) Cause {
	self, _ := h.status(0)
	if !self.Can(unix.CAP_SYS_ADMIN) {
		return Cause{Class: Forbidden, Name: "probe-capability", Remedy: h.toHave("SYS_ADMIN", "PERFMON", "BPF"),
			Why: "probes need CAP_SYS_ADMIN, which goprof lacks"}
	}
	return h.refused("probes", err, "sudo dmesg | tail")
}

// toHave returns goprof's own command line, run with capabilities that goprof lacks.
func (h Host) toHave(capabilities ...string) string {
	if self, _ := h.status(0); self.EUID == 0 {
		return "docker run --cap-add " + strings.Join(capabilities, " --cap-add ") + " ..."
	}
	return h.sudo()
}

// ExplainEvent adds to an error of session.FindEvent why the kernel refuses the event.
func (h Host) ExplainEvent(pid int, e *session.EventError) {
	switch {
	case errors.Is(e.Err, events.ErrNoUprobes):
		e.Why = needProbes.missing("uprobes for perf_event_open")
	case isPerfError(e.Err):
		c := h.explainPerf(pid, e.Err)
		e.Why, e.Remedy = c.Why, c.Remedy
	}
}

// checkProbes tries what --event alloc and similar events need, with the rights that such recordings keep. Recordings
// of CPU time do not need probes.
func (h Host) checkProbes(r *Report, n *need, _ int) {
	var cause *Cause
	guard.With(guard.ToProbe, func() {
		if err := events.TryProbes(); err != nil {
			cause = new(h.Explain(0, err))
		}
	})
	if cause == nil {
		r.ok(n.name, "%s work", n.lost)
		return
	}
	r.info(n.name, cause.Remedy, "%s would not work: %s", n.lost, cause.Why)
}
