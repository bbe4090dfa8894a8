//go:build linux

package diagnose

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"goprof/process/procfs"
	"goprof/sampler/events"
	"goprof/sampler/guard"
	"goprof/sampler/offcpu"
	"goprof/sampler/ring"
	"goprof/session"
)

// These checks try a need on this machine. goprof works without any of these needs, so the verdict is Info.

func (h Host) checkRealTime(r *Report, n *need, _ int) {
	if why, cure := session.NoPriority(); why != "" {
		r.info(n.name, cure, "%s: it loses %s", why, n.lost)
		return
	}
	r.ok(n.name, "goprof may take a CPU when a stop is due")
}

func (h Host) checkCPULimit(r *Report, n *need, _ int) {
	var least time.Duration
	for _, limit := range procfs.OwnCPULimits() {
		if least == 0 || limit.Quota < least {
			least = limit.Quota
		}
	}
	if least > 0 {
		r.info(n.name, "a higher CPU limit for goprof's container",
			"goprof's control group may use %v of CPU time in each period (mostly 100ms): it loses %s", least, n.lost)
		return
	}
	r.ok(n.name, "none for goprof's control group")
}

func (h Host) checkSchedstat(r *Report, n *need, _ int) {
	b, _ := procfs.Read("/proc/self/schedstat", procfs.MaxFile)
	if own, ok := procfs.ParseSchedstat(b); !ok || own.Turns == 0 { // "0 0 0" without sched_info (fs/proc/base.c)
		r.info(n.name, "", "this kernel does not keep it: no %s", n.lost)
		return
	}
	r.ok(n.name, "the kernel charges threads in ns")
}

func (h Host) checkPressure(r *Report, n *need, _ int) {
	b, _ := procfs.Read("/proc/pressure/cpu", procfs.MaxFile)
	if _, ok := procfs.ParsePressure(b); !ok {
		r.info(n.name, "", "not reported by this kernel (%s; Linux %s on): no %s", n.wants, n.since, n.lost)
		return
	}
	r.ok(n.name, "the kernel reports it")
}

// asRecorder tries something with the rights that a recording keeps. It returns the cause if that fails.
func (h Host) asRecorder(keep guard.Keep, pid int, try func() error) (cause *Cause) {
	guard.With(keep, func() {
		if err := try(); err != nil {
			cause = new(h.Explain(pid, err))
		}
	})
	return cause
}

// checkWide reports which engine --engine auto uses.
func (h Host) checkWide(r *Report, n *need, pid int) {
	var choice Choice
	var err error
	guard.With(guard.ToRecord, func() { choice, err = h.ChooseEngine(session.AutoEngine, pid, 0) })
	switch {
	case err != nil: // another check reports it
	case choice.Engine == session.PerfEngine && choice.Note == "":
		r.ok(n.name, "--engine auto takes perf")
	default:
		r.info(n.name, choice.Remedy, "--engine auto: %s", choice.Note)
	}
}

func (h Host) checkSwitches(r *Report, n *need, pid int) {
	if c := h.asRecorder(guard.ToRecord, pid, func() error { return offcpu.Try(pid) }); c != nil {
		r.info(n.name, c.Remedy, "no %s (%s)", n.lost, c.Why)
		return
	}
	r.ok(n.name, "--event off-cpu and lock know each wait")
}

func (h Host) checkRings(r *Report, n *need, pid int) {
	var one, wanted int
	var all int64
	if c := h.asRecorder(guard.ToRecord, pid, func() (err error) {
		one, wanted, all, err = ring.TryRings()
		return err
	}); c != nil {
		r.info(n.name, c.Remedy, "no rings for --engine perf (%s)", c.Why)
		return
	}
	text := fmt.Sprintf("rings of perf events: up to %s for a recording on this many CPUs, and never more than %s in all",
		megabytes(all), megabytes(ring.MostLocked()))
	if one < wanted {
		all := 2 * (wanted + os.Getpagesize()) // of a CPU, as TryRings counts
		r.info(n.name, fmt.Sprintf("%s, or sudo sysctl kernel.perf_event_mlock_kb=%d", h.toHave("IPC_LOCK"), all>>10),
			"%s; the kernel permits %d KB of %d for each CPU: it loses %s", text, one>>10, wanted>>10, n.lost)
		return
	}
	r.ok(n.name, "%s", text)
}

func megabytes(n int64) string { return fmt.Sprintf("%d MB", (n+1<<19)>>20) }

func (h Host) checkTracepoints(r *Report, n *need, _ int) {
	if bad := session.TracepointsError(); bad != nil {
		r.info(n.name, bad.Remedy, "no %s: %s", n.lost, bad.Why)
		return
	}
	r.ok(n.name, "%s works where probes or perf do", n.lost)
}

func (h Host) checkCounters(r *Report, n *need, _ int) {
	c := h.asRecorder(guard.ToRecord, 0, func() error {
		err := events.TryCounter(os.Getpid(), unix.PERF_TYPE_HARDWARE, unix.PERF_COUNT_HW_CPU_CYCLES)
		if errors.Is(err, events.ErrNoCounter) {
			r.info(n.name, "", "this machine has none (virtual machines mostly have none): no %s", n.lost)
			return nil
		}
		if err == nil {
			r.ok(n.name, "%s work", n.lost)
		}
		return err
	})
	if c != nil {
		r.info(n.name, c.Remedy, "no %s: %s", n.lost, c.Why)
	}
}

// checkKernelNames reads names until one has an address. If the kernel hides the addresses, all are 0.
func (h Host) checkKernelNames(r *Report, n *need, _ int) {
	shown := false
	guard.With(guard.ToRecordKernel, func() {
		f, err := os.Open("/proc/kallsyms")
		if err != nil {
			return
		}
		defer f.Close()
		lines := bufio.NewScanner(f)
		for i := 0; i < 10_000 && !shown && lines.Scan(); i++ {
			addr, kind, _ := bytes.Cut(lines.Bytes(), []byte{' '})
			shown = len(bytes.Trim(addr, "0")) > 0 && len(kind) > 0 && (kind[0] == 't' || kind[0] == 'T')
		}
	})
	if !shown {
		r.info(n.name, "sudo sysctl kernel.kptr_restrict=0, or "+h.sudo(), "the kernel hides its addresses: no %s", n.lost)
		return
	}
	r.ok(n.name, "--kernel names the kernel's functions")
}

// opensMappedFile opens a file that goprof has mapped itself. The kernel requires the same right for each process
// (fs/proc/base.c, proc_map_files_get_link).
func opensMappedFile() bool {
	const folder = "/proc/self/map_files"
	names, err := os.ReadDir(folder)
	if err != nil || len(names) == 0 {
		return false
	}
	fd, err := unix.Open(folder+"/"+names[0].Name(), unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	unix.Close(fd)
	return true
}
