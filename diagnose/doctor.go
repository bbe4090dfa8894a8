//go:build linux

package diagnose

import (
	"cmp"
	"fmt"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"goprof/arch/cpus"
	"goprof/process/procfs"
)

// Verdict is the result of one of doctor's checks.
type Verdict uint8

const (
	OK   Verdict = iota
	Warn         // goprof works, but with limits
	Fail         // goprof does not work
	Info         // something unnecessary does not work
)

func (v Verdict) String() string { return [...]string{"ok", "warn", "fail", "info"}[min(v, Info)] }

// Check is the result of one check of doctor.
type Check struct {
	Name    string
	Verdict Verdict
	Text    string // may hold text of the target
	Remedy  string // the command that mends it, if any
}

// Report holds doctor's checks.
type Report struct {
	Checks []Check
	// Cause is the first failure, if recording would not work. Otherwise it is nil.
	Cause *Cause
}

func (r *Report) ok(name, format string, args ...any) {
	r.Checks = append(r.Checks, Check{name, OK, fmt.Sprintf(format, args...), ""})
}

func (r *Report) warn(name, remedy, format string, args ...any) {
	r.Checks = append(r.Checks, Check{name, Warn, fmt.Sprintf(format, args...), remedy})
}

// info reports that an unnecessary thing does not work.
func (r *Report) info(name, remedy, format string, args ...any) {
	r.Checks = append(r.Checks, Check{name, Info, fmt.Sprintf(format, args...), remedy})
}

func (r *Report) fail(name string, c Cause) {
	r.Checks = append(r.Checks, Check{name, Fail, c.Why, c.Remedy})
	if r.Cause == nil {
		r.Cause = &c
	}
}

// Examine finds out what works on this host, and for process pid unless pid is 0. It only reads, and stops no thread.
// It tries system calls that could stop a thread on goprof itself.
func (h Host) Examine(pid int) Report {
	var r Report
	if c := h.CheckProc(); c != nil {
		r.fail("/proc", *c) // the other checks read /proc
		return r
	}
	var own Report
	if pid == 0 {
		h.checkJVMs(&own)
	} else {
		h.examineInTime(&own, pid)
	}
	otherCPU := own.Cause != nil && own.Cause.Name == otherCPU
	for _, n := range needs() {
		if n.check != nil && !(n.how == tries && (otherCPU || h.Proc != "")) {
			n.check(h, &r, n.need, pid)
		}
	}
	r.Checks = append(r.Checks, own.Checks...)
	r.Cause = cmp.Or(r.Cause, own.Cause)
	return r
}

func (h Host) checkCPU(r *Report, _ *need, _ int) {
	if cpus.Here() != nil {
		r.ok("cpu", "%s, %d CPUs", runtime.GOARCH, runtime.NumCPU())
	} else {
		r.fail("cpu", Cause{Class: NotJVM, Name: otherCPU,
			Why: "goprof knows x86-64 and aarch64, and this is " + runtime.GOARCH})
	}
}

func (h Host) checkKernel(r *Report, _ *need, _ int) {
	release := h.release()
	if release == "" {
		r.warn("kernel", "uname -r", "its version cannot be read")
		return
	}
	r.ok("kernel", "Linux %s", release)
}

// release returns the kernel's version, or "" if it cannot be read.
func (h Host) release() string {
	b, _ := h.read(filepath.Join(h.proc(), "sys/kernel/osrelease"), 256)
	return strings.TrimSpace(string(b))
}

// older reports whether release is older than the version than, by the first two numbers.
func older(release, than string) bool {
	a, b := twoNumbers(release), twoNumbers(than)
	return a[0] < b[0] || a[0] == b[0] && a[1] < b[1]
}

func twoNumbers(version string) (n [2]int) {
	for i, part := range strings.SplitN(version, ".", 3) {
		if i == len(n) {
			break
		}
		end := strings.IndexFunc(part, func(r rune) bool { return r < '0' || r > '9' })
		if end < 0 {
			end = len(part)
		}
		n[i], _ = strconv.Atoi(part[:end])
	}
	return n
}

func (h Host) checkCapabilities(r *Report, _ *need, _ int) {
	self, ok := h.status(0)
	switch {
	case !ok:
		r.warn("capabilities", "", "/proc/self/status cannot be read")
	case self.Can(unix.CAP_SYS_PTRACE) && h.ownerOnly(self, procfs.Status{EUID: -1}):
		r.warn("capabilities", h.sudo(), "CAP_SYS_PTRACE without CAP_DAC_READ_SEARCH: processes of all users, but other "+
			"users' not with --mode wall, off-cpu and dump --nonblocking")
	case self.Can(unix.CAP_SYS_PTRACE):
		r.ok("capabilities", "CAP_SYS_PTRACE: processes of all users")
	case self.EUID == 0 && self.Bounding&(1<<unix.CAP_SYS_PTRACE) == 0:
		r.warn("capabilities", inContainer, "root without CAP_SYS_PTRACE, as in a container: only processes with the same "+
			"user and no more capabilities")
	default:
		r.warn("capabilities", h.sudo(), "no CAP_SYS_PTRACE: only processes of user %s", userName(self.EUID))
	}
}

func (h Host) checkYama(r *Report, _ *need, _ int) {
	self, _ := h.status(0)
	capable := self.Can(unix.CAP_SYS_PTRACE)
	_, has := h.read(filepath.Join(h.proc(), "sys/kernel/yama/ptrace_scope"), 16)
	scope := h.yamaScope()
	switch {
	case !has:
		r.ok("yama", "not in this kernel")
	case scope <= 0:
		r.ok("yama", "kernel.yama.ptrace_scope is 0")
	case scope >= 3:
		r.fail("yama", yamaForbids())
	case capable:
		r.ok("yama", "kernel.yama.ptrace_scope is %d, which CAP_SYS_PTRACE overrides", scope)
	default:
		r.warn("yama", h.sudo()+", or sudo sysctl kernel.yama.ptrace_scope=0", "kernel.yama.ptrace_scope is %d: %s", scope,
			yamaMeaning(scope))
	}
}

func (h Host) checkSeccomp(r *Report, _ *need, pid int) {
	self, _ := h.status(0)
	switch {
	case h.Proc == "" && readBlocked():
		r.fail("seccomp", h.seccomp())
	case h.Proc == "" && ptraceBlocked():
		if c, _ := h.tryPerf(pid); c != nil {
			r.fail("seccomp", h.seccomp())
			return
		}
		r.warn("seccomp", h.seccomp().Remedy, "a filter on goprof forbids ptrace: recordings take perf, and dumps have no "+
			"stacks")
	case self.Seccomp != 0:
		r.ok("seccomp", "a filter is on, and lets ptrace and process_vm_readv pass")
	default:
		r.ok("seccomp", "no filter")
	}
}

// checkModules looks for a security module's profile that confines goprof. goprof cannot read the rules of the profile.
func (h Host) checkModules(r *Report, _ *need, _ int) {
	b, _ := h.read(h.file(0, "attr/current"), 4096)
	label := strings.TrimRight(strings.ToValidUTF8(string(b), "?"), "\x00\n")
	if strings.HasSuffix(label, "(enforce)") { // AppArmor
		r.warn("security module", "docker run --security-opt apparmor=unconfined ...",
			"goprof runs under the AppArmor profile %s, which may forbid ptrace", label)
		return
	}
	r.ok("security module", "%s", cmp.Or(label, "none confines goprof"))
}

func (h Host) checkNamespaces(r *Report, _ *need, _ int) {
	var in []string
	for _, kind := range []string{"pid", "user"} {
		if h.nested(kind) {
			in = append(in, kind)
		}
	}
	if len(in) > 0 {
		r.warn("namespaces", inContainer, "goprof is in a container (own %s namespace): it sees only processes there",
			strings.Join(in, " and "))
		return
	}
	r.ok("namespaces", "goprof is in the host's: it sees the processes of all containers")
}

// checkMapFiles checks whether goprof may open mapped files that have been renamed or deleted.
func (h Host) checkMapFiles(r *Report, n *need, _ int) {
	if h.opensMapped() {
		r.ok(n.name, "libraries that were replaced on disk can still be read")
		return
	}
	r.warn(n.name, h.mapFilesRemedy(), "no CAP_CHECKPOINT_RESTORE on the host: %s", n.lost)
}

// fewFiles is a low limit of file descriptors. Each watched thread takes one or two, so only few threads can be
// watched.
const fewFiles = 1024

func (h Host) checkFiles(r *Report, n *need, _ int) {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) != nil {
		return
	}
	if limit.Max < fewFiles {
		r.warn(n.name, "ulimit -n 65536", "goprof may open %d files: it loses %s", limit.Max, n.lost)
		return
	}
	r.ok(n.name, "%d", limit.Max)
}

// checkJVMs counts the JVMs that goprof list would show.
func (h Host) checkJVMs(r *Report) {
	found := h.look(h.pids())
	var first *JVM
	readable := 0
	for i := range found {
		if found[i].Problem == nil {
			readable++
		} else if first == nil {
			first = &found[i]
		}
	}
	switch {
	case len(found) == 0:
		r.ok("JVMs", "none is running")
	case first == nil:
		r.ok("JVMs", "%d, and all can be recorded", len(found))
	default:
		r.warn("JVMs", h.doctor(first.PID), "%d, of which %d can be recorded; not %d: %s", len(found), readable, first.PID,
			first.Problem.Why)
	}
}
