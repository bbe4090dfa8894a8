//go:build linux

package diagnose

import (
	"errors"
	"fmt"
	"strconv"

	"golang.org/x/sys/unix"

	"goprof/process"
	"goprof/sampler"
	"goprof/sampler/events"
	"goprof/sampler/offcpu"
	"goprof/sampler/ptrace"
	"goprof/sampler/ring"
	"goprof/session"
	"goprof/vmstructs"
)

// Class groups causes by what the caller can do.
type Class uint8

const (
	Unexplained Class = iota
	NoProcess         // no process has this number
	NotJVM            // not a readable HotSpot, or not yet
	Forbidden         // goprof lacks a right
	Gone              // the process ended, or became another program
)

func (c Class) String() string {
	return [...]string{"unexplained", "no process", "not a JVM", "forbidden", "gone"}[min(c, Gone)]
}

// Cause is the reason why goprof cannot look at a process, with the command that changes it.
type Cause struct {
	Class  Class
	Name   string // a stable identifier: "yama", "other-user"
	Why    string
	Remedy string // a command; empty if there is none
}

// Names of causes that other code compares.
const (
	notJava        = "not-java"
	otherCPU       = "other-cpu"
	starting       = "starting"
	securityModule = "security-module"
	yama           = "yama"
)

// Passes reports whether the cause soon disappears by itself.
func (c *Cause) Passes() bool { return c.Name == starting }

// Host is the machine that is examined. The zero Host is this machine.
type Host struct {
	// Proc is the root of the proc file system. Tests use a fake one.
	Proc string
	// Command is goprof's own command line, for remedies that repeat it.
	Command string
	// owner returns the owner of a file. Tests replace it, because they cannot change owners of files.
	owner func(path string) (uid int, ok bool)
}

// ErrTraced says that every look failed, because another process traces the threads.
var ErrTraced = errors.New("diagnose: it is traced already")

// Explain finds out why a look at process pid failed with err, an error of session.Attach, Record or Dump. It only
// reads /proc. The answer is about the present moment: the cause of the failure may no longer exist.
func (h Host) Explain(pid int, err error) Cause {
	var unsupported *vmstructs.Unsupported
	var denied *sampler.NotPermittedError
	switch {
	case errors.Is(err, process.ErrNoProc), errors.Is(err, process.ErrOtherProc):
		return h.explainProc(err)
	case errors.Is(err, process.ErrNoProcess):
		return h.explainMissing(pid)
	case errors.Is(err, process.ErrNoMemory):
		return h.explainNoMemory(pid)
	case errors.Is(err, process.ErrNotPermitted), errors.As(err, &denied):
		return h.ExplainForbidden(pid)
	case errors.Is(err, ErrTraced):
		if tracer := h.tracerOf(pid); tracer != 0 {
			return h.traced(tracer)
		}
		return Cause{Class: Forbidden, Name: "traced", Why: "another process traced it", Remedy: h.command()}
	case errors.Is(err, process.ErrSilent), errors.Is(err, ptrace.ErrSilent), errors.Is(err, session.ErrHangs):
		return h.silentCause(pid)
	case errors.Is(err, process.ErrGone), errors.Is(err, sampler.ErrNoProcess):
		return h.explainGone(pid)
	case errors.Is(err, process.ErrUnknownCPU):
		return h.explainOtherCPU(pid)
	case errors.Is(err, vmstructs.ErrStarting):
		return Cause{Class: NotJVM, Name: starting, Why: "its JVM is still starting", Remedy: "sleep 1; " + h.command()}
	case errors.Is(err, vmstructs.ErrZero):
		return Cause{Class: NotJVM, Name: "zero",
			Why:    "its JVM is a Zero VM, whose Java frames goprof cannot read",
			Remedy: byJcmd(pid)}
	case errors.Is(err, vmstructs.ErrNotHotSpot):
		return h.explainOtherProgram(pid)
	case errors.As(err, &unsupported):
		return Cause{Class: NotJVM, Name: "unsupported", Why: "its JVM cannot be read: " + unsupported.Error(),
			Remedy: h.doctor(pid)}
	case errors.Is(err, vmstructs.ErrBadTables):
		return Cause{Class: NotJVM, Name: "bad-tables",
			Why: "what its libjvm.so exports for debuggers does not hold together", Remedy: h.doctor(pid)}
	case errors.Is(err, session.ErrNoVirtual):
		return Cause{Name: "no-virtual", Why: err.Error(), Remedy: fmt.Sprintf("goprof dump --pid %d", pid)}
	case errors.Is(err, ring.ErrNested):
		return Cause{Class: Forbidden, Name: "perf-nested", Remedy: byPtrace(pid),
			Why: "perf_event chooses samples by process numbers outside of containers, and goprof is in a PID namespace " +
				"(on the host, or with --pid=host, it is not)"}
	case errors.Is(err, events.ErrNoUprobes):
		return Cause{Name: "no-perf", Why: needProbes.missing("uprobes for perf_event_open")}
	case errors.Is(err, offcpu.ErrUnmarked):
		return Cause{Name: "no-perf", Why: needSwitches.missing("records of switches that distinguish waits from lost CPUs")}
	case errors.Is(err, session.ErrKernelHidden):
		return Cause{Class: Forbidden, Name: "kernel-names", Why: err.Error(),
			Remedy: "sudo sysctl kernel.kptr_restrict=1, and " + h.toHave("SYSLOG")}
	case isPerfError(err):
		return h.explainPerf(pid, err)
	case errors.Is(err, unix.EMFILE), errors.Is(err, unix.ENFILE):
		return h.fewFiles()
	}
	return Cause{Name: "unknown", Why: err.Error(), Remedy: h.doctor(pid)}
}

// fewFiles: goprof has raised its soft limit to the hard one by then, and only root raises that one.
func (h Host) fewFiles() Cause {
	mend := "ulimit -n 65536; "
	if self, _ := h.status(0); self.EUID != 0 {
		mend = "sudo prlimit --pid $$ --nofile=65536; "
	}
	return Cause{Name: "fd-limit", Why: "goprof may not open more files", Remedy: mend + h.command()}
}

// explainGone distinguishes an exec from an exit.
func (h Host) explainGone(pid int) Cause {
	s, ok := h.status(pid)
	if !ok || s.State == 'Z' || s.State == 'X' {
		return Cause{Class: Gone, Name: "gone", Why: "it ended", Remedy: h.list()}
	}
	return Cause{Class: Gone, Name: "exec", Why: fmt.Sprintf("it became another program (%s)", s.Name),
		Remedy: h.command()}
}

func (h Host) explainNoMemory(pid int) Cause {
	if s, ok := h.status(pid); ok && s.KernelThread {
		return Cause{Class: NotJVM, Name: "kernel-thread", Why: fmt.Sprintf("it is a thread of the kernel (%s)", s.Name),
			Remedy: h.list()}
	}
	return Cause{Class: Gone, Name: "gone", Why: "it is just ending", Remedy: h.list()}
}

func (h Host) explainOtherProgram(pid int) Cause {
	c := Cause{Class: NotJVM, Remedy: h.list()}
	switch h.program(pid) {
	case openJ9:
		c.Name, c.Why, c.Remedy = "openj9", "its JVM is Eclipse OpenJ9, and goprof reads HotSpot only", byJcmd(pid)
	case nativeImage:
		c.Name, c.Why, c.Remedy = "native-image", "it is a GraalVM native image: it holds no JVM",
			"perf record -g --pid "+strconv.Itoa(pid)
	case hotSpot:
		if process.TablesShort() {
			return Cause{Name: "tables-full", Why: "goprof reads so many other JVMs that there is no room for its symbols",
				Remedy: "goprof agent --max-jvms 100"}
		}
		c.Name, c.Why, c.Remedy = "no-symbols", "its libjvm.so exports no tables for debuggers (gHotSpotVMStructs)",
			h.doctor(pid)
	default:
		h.explainNotJava(pid, &c)
	}
	return c
}

// explainOtherCPU offers jcmd for a 32-bit JVM. There is no remedy for other programs.
func (h Host) explainOtherCPU(pid int) Cause {
	c := Cause{Class: NotJVM, Name: otherCPU,
		Why: "it is not a 64-bit program of a CPU that goprof knows (x86-64, aarch64)"}
	if h.program(pid) == hotSpot {
		c.Why = "its JVM is not a 64-bit one of a CPU that goprof knows (x86-64, aarch64)"
		c.Remedy = byJcmd(pid)
	}
	return c
}

// byJcmd returns a command that prints the stacks of a JVM that goprof cannot read.
func byJcmd(pid int) string { return "jcmd " + strconv.Itoa(pid) + " Thread.print" }

// explainNotJava also handles a pid that a user has read inside a container, such as 1: it finds the JVM with that
// inner pid.
func (h Host) explainNotJava(pid int, c *Cause) {
	c.Name, c.Why = notJava, "it runs no JVM: no libjvm.so is mapped"
	if s, ok := h.status(pid); ok {
		c.Why = fmt.Sprintf("it runs no JVM (%s): no libjvm.so is mapped", s.Name)
	}
	var meant []inner
	for _, p := range h.insideNamespaces(pid) {
		if p.pid != pid && h.program(p.pid) == hotSpot {
			meant = append(meant, p)
		}
	}
	if len(meant) == 0 {
		return
	}
	c.Name = "inner-pid"
	c.Why += fmt.Sprintf("; in a container, %d is the number of the JVM that is %s here", pid, joinFirst(meant, 5))
	if len(meant) == 1 {
		c.Remedy = h.instead(pid, meant[0].pid)
	}
}

func (h Host) command() string {
	if h.Command == "" {
		return "goprof"
	}
	return h.Command
}

func (h Host) list() string          { return "goprof list" }
func (h Host) doctor(pid int) string { return "goprof doctor --pid " + strconv.Itoa(pid) }
