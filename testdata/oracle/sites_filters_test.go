//go:build linux

package oracle

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"goprof/testdata/host"
	"goprof/testdata/jvmtest"
	"goprof/testdata/oldkernel"
)

// Calls that filters of containers, units and sandboxes refuse: moby's profiles/seccomp/default.json, systemd's groups
// @debug, @privileged and @resources (src/shared/seccomp-util.c), and gVisor's table of calls.
var (
	// decisive are those without which goprof lacks something, and says so.
	decisive = map[string]uint32{"ptrace": unix.SYS_PTRACE, "process_vm_readv": unix.SYS_PROCESS_VM_READV,
		"perf_event_open": unix.SYS_PERF_EVENT_OPEN, "bpf": unix.SYS_BPF, "sched_setattr": unix.SYS_SCHED_SETATTR,
		"sched_setaffinity": unix.SYS_SCHED_SETAFFINITY}
	// dispensable are those without which everything works.
	dispensable = map[string]uint32{"openat2": unix.SYS_OPENAT2, "pidfd_open": unix.SYS_PIDFD_OPEN,
		"pidfd_send_signal": unix.SYS_PIDFD_SEND_SIGNAL, "faccessat2": unix.SYS_FACCESSAT2, "capget": unix.SYS_CAPGET,
		"capset": unix.SYS_CAPSET, "prctl": unix.SYS_PRCTL, "seccomp": unix.SYS_SECCOMP, "prlimit64": unix.SYS_PRLIMIT64,
		"flock": unix.SYS_FLOCK, "statx": unix.SYS_STATX,
		"timer_create": unix.SYS_TIMER_CREATE, "timer_settime": unix.SYS_TIMER_SETTIME,
		"timer_delete": unix.SYS_TIMER_DELETE, "timerfd_create": unix.SYS_TIMERFD_CREATE,
		"timerfd_settime": unix.SYS_TIMERFD_SETTIME, "setpgid": unix.SYS_SETPGID}
)

// common are calls that no filter refuses: programs of all sorts need them.
const common = " access arch_prctl brk clock_gettime clock_nanosleep clone clone3 close dup2 dup3 epoll_create1 " +
	"epoll_ctl epoll_pwait eventfd2 execve exit exit_group faccessat fcntl fstat fstatfs fsync futex " +
	"getcpu getdents64 getegid geteuid getgid getpid getppid getpriority getrandom getrlimit gettid " +
	"getuid ioctl lseek madvise mincore mmap mprotect munmap nanosleep newfstatat openat pipe2 poll " +
	"ppoll pread64 read readlinkat renameat restart_syscall rseq rt_sigaction rt_sigprocmask " +
	"rt_sigreturn sched_getaffinity sched_getattr sched_getscheduler sched_yield set_robust_list " +
	"set_tid_address setrlimit sigaltstack statfs sysinfo tgkill uname unlinkat waitid write "

// TestFiltersAreNamed: where a filter refuses a call, whatever its answer, goprof does without, or names the filter.
func TestFiltersAreNamed(t *testing.T) {
	t.Parallel()
	host.NeedRoot(t)
	host.NeedPerf(t)
	goprof := buildGoprof(t)
	jvmtest.ForNewestJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		jvm := jvmtest.Start(t, jdk, "truth.Allocating", "-Xmx128m", "--", "1000000000", "2")
		pid := fmt.Sprint(jvm.PID)
		record := func(flags string) []string {
			return slices.Concat([]string{"record", "--pid", pid, "-d", "500ms", "-o",
				filepath.Join(t.TempDir(), "out.collapsed")}, strings.Fields(flags))
		}
		const filter = "a seccomp filter on goprof itself forbids "
		for row, r := range []struct {
			call  string // empty: all dispensable ones
			words []string
			code  int
			says  string
		}{
			{"ptrace", record("--engine ptrace"), 5, filter + "ptrace"},
			{"ptrace", record("--engine auto"), 0, "Profile"},
			{"ptrace", []string{"dump", pid}, 5, filter + "ptrace"},
			{"ptrace", []string{"doctor", pid}, 0, "a filter on goprof forbids ptrace: recordings take perf"},
			{"process_vm_readv", record(""), 5, filter + "ptrace or process_vm_readv"},
			{"process_vm_readv", []string{"doctor", pid}, 5, filter + "ptrace or process_vm_readv"},
			{"perf_event_open", record("--engine perf"), 5, filter + "perf_event_open"},
			{"perf_event_open", record("--engine auto"), 0, filter + "perf_event_open"},
			{"perf_event_open", record("--event alloc"), 16, filter + "perf_event_open"},
			{"perf_event_open", record("--event off-cpu"), 0, filter + "perf_event_open"},
			{"bpf", record("--engine perf"), 5, filter + "the call bpf"},
			{"bpf", record("--engine auto"), 0, filter + "the call bpf"},
			{"bpf", record("--event alloc"), 16, filter + "the call bpf"},
			{"sched_setattr", []string{"doctor", pid}, 0, "a seccomp filter on goprof forbids it real-time priority"},
			{"sched_setaffinity", record("--engine perf"), 0, "Profile"},
			{"", []string{"dump", pid}, 0, "truth.Allocating"},
			{"", record("--engine perf"), 0, "Profile"},
		} {
			for i, answer := range []unix.Errno{unix.EPERM, unix.ENOSYS} {
				if !longForm && i != row%2 {
					continue // in turns: goprof asks for neither
				}
				rules := []oldkernel.Rule{oldkernel.Refuses(decisive[r.call], answer)}
				if r.call == "" {
					rules = nil
					for _, number := range dispensable {
						rules = append(rules, oldkernel.Refuses(number, answer))
					}
				}
				out, code := runSampled(t, r.code, rules, slices.Concat([]string{goprof}, r.words))
				if code != r.code || !strings.Contains(out, r.says) || strings.Contains(out, "security module (") {
					t.Errorf("%s %v, %v: exit code %d, %q is wanted:\n%s", r.call, answer, r.words, code, r.says, out)
				}
			}
		}
	})
}

// runSampled runs goprof again where a recording has no samples: the program had no CPU in that time. It also does so
// where a refusal is wanted, and the only samples were of threads that slept, which needs no right to stop them.
func runSampled(t *testing.T, want int, rules []oldkernel.Rule, words []string) (out string, code int) {
	for range 20 {
		out, code = oldkernel.Run(t, rules, words...)
		untried := code == 0 && want != 0 && strings.Contains(out, "none lost")
		if code != noSample && code != notComplete && !untried {
			break
		}
	}
	return out, code
}

// TestCallsAreKnown: goprof makes no system call of which the test above does not know what becomes without it.
func TestCallsAreKnown(t *testing.T) {
	t.Parallel()
	host.NeedRoot(t)
	host.NeedPerf(t)
	if _, err := exec.LookPath("strace"); err != nil {
		t.Skip("needs strace (scripts/tools.sh strace)")
	}
	goprof := buildGoprof(t)
	jvmtest.ForNewestJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		jvm := jvmtest.Start(t, jdk, "truth.Allocating", "-Xmx128m", "--", "1000000000", "2")
		dir := t.TempDir()
		out := filepath.Join(dir, "out.collapsed")
		for i, line := range []string{"list", "doctor PID", "dump PID", "record --engine ptrace", "record --engine perf",
			"record --mode wall", "record --event alloc,page-faults=1", "record --event off-cpu"} {
			if strings.HasPrefix(line, "record") {
				line += " --pid PID -d 500ms -o " + out
			}
			counts := filepath.Join(dir, fmt.Sprint("calls-", i))
			words := strings.Fields(strings.ReplaceAll(line, "PID", fmt.Sprint(jvm.PID)))
			said, err := exec.Command("strace", slices.Concat([]string{"-f", "-c", "-o", counts, goprof}, words)...).
				CombinedOutput()
			table, _ := os.ReadFile(counts)
			known := 0
			for row := range strings.Lines(string(table)) {
				fields := strings.Fields(row)
				if len(fields) < 5 || strings.Trim(fields[0], "0123456789.") != "" || fields[len(fields)-1] == "total" {
					continue // a headline
				}
				call := fields[len(fields)-1]
				if known++; decisive[call] == 0 && dispensable[call] == 0 && !strings.Contains(common, " "+call+" ") {
					t.Errorf("%s makes the call %s", line, call)
				}
			}
			if known < 10 {
				t.Errorf("%s: strace saw %d calls: %v: %s", line, known, err, said)
			}
		}
	})
}
