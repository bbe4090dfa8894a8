//go:build linux

package diagnose

import (
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"goprof/sampler/events"
	"goprof/sampler/perf"
	"goprof/sampler/ring"
	"goprof/session"
	"goprof/testdata/host"
)

// TestExplainPerf: why perf_event may not be used, on hosts unlike this machine.
func TestExplainPerf(t *testing.T) {
	refused := func(call string, e error) error { return &ring.Error{Call: call, Err: e} }
	paranoid := func(level string) func(f *fakeProc) {
		return func(f *fakeProc) { f.write("sys/kernel/perf_event_paranoid", level+"\n") }
	}
	for _, c := range []struct {
		name   string
		setup  func(f *fakeProc)
		err    error
		class  Class
		cause  string
		why    string
		remedy string
	}{
		{"a user of Debian", paranoid("3"), refused("perf_event_open", unix.EACCES), Forbidden, "perf-paranoid",
			"kernel.perf_event_paranoid is 3, and while it is above 2 this kernel wants CAP_SYS_ADMIN",
			"sudo goprof record --pid 77 --engine perf, or sudo sysctl kernel.perf_event_paranoid=1"},
		{"Debian, and CAP_PERFMON alone", func(f *fakeProc) { paranoid("3")(f); f.as(without(unix.CAP_SYS_ADMIN)) },
			refused("perf_event_open", unix.EACCES), Forbidden, "perf-paranoid", "wants CAP_SYS_ADMIN, which goprof lacks",
			"sysctl kernel.perf_event_paranoid=2"},
		{"Debian, and root in a container", func(f *fakeProc) { paranoid("3")(f); f.as(with(root(), "CapEff", "80000")) },
			refused("perf_event_open", unix.EACCES), Forbidden, "perf-paranoid", "wants CAP_SYS_ADMIN, which goprof lacks",
			"on the host: sysctl kernel.perf_event_paranoid=2"},
		{"root in a container", func(f *fakeProc) { paranoid("2")(f); f.as(with(root(), "CapEff", "80000")); f.it(root()) },
			refused("perf_event_open", unix.EACCES), Forbidden, "perf-paranoid", "lacks CAP_PERFMON",
			"docker run --cap-add PERFMON"},
		{"probes, and no right to them", func(f *fakeProc) { paranoid("2")(f); f.as(without(unix.CAP_SYS_ADMIN)) },
			refused(events.ProbeCall, unix.EACCES), Forbidden, "probe-capability", "probes need CAP_SYS_ADMIN",
			"docker run --cap-add SYS_ADMIN"},
		{"probes of a user", paranoid("2"), refused(events.ProbeCall, unix.EACCES), Forbidden, "probe-capability",
			"probes need CAP_SYS_ADMIN", "sudo goprof record"},
		{"BPF of a user", paranoid("2"), refused("bpf", unix.EPERM), Forbidden, "bpf-capability",
			"need CAP_BPF and CAP_PERFMON", "sudo goprof record"},
		{"BPF before 5.11 under the usual limit", func(f *fakeProc) {
			f.as(root())
			f.write("sys/kernel/osrelease", "5.10.0-32-amd64\n")
			f.write("self/limits", "Limit Soft Limit Hard Limit Units\nMax locked memory 65536 65536 bytes\n")
		}, refused("bpf", unix.EPERM), Forbidden, "bpf-memory", "of which goprof may have 64 KB (RLIMIT_MEMLOCK)",
			"docker run --cap-add SYS_RESOURCE"},
		{"BPF of 5.10 without a limit", func(f *fakeProc) {
			f.as(root())
			f.write("sys/kernel/osrelease", "5.10.0-32-amd64\n")
			f.write("self/limits", "Max locked memory unlimited unlimited bytes\n")
		}, refused("bpf", unix.EPERM), Forbidden, "perf-refused", "the kernel refuses BPF programs by no rule", "dmesg"},
		{"BPF of 6.1", func(f *fakeProc) {
			f.as(root())
			f.write("sys/kernel/osrelease", "6.1.0-50-amd64\n")
			f.write("self/limits", "Max locked memory 65536 65536 bytes\n")
		}, refused("bpf", unix.EPERM), Forbidden, "perf-refused", "the kernel refuses BPF programs by no rule", "dmesg"},
		{"BPF behind a filter", func(f *fakeProc) { f.as(with(root(), "Seccomp", "2")) }, refused("bpf", unix.EPERM),
			Forbidden, "bpf-seccomp", "a seccomp filter", "seccomp=unconfined"},
		{"another user's process", func(f *fakeProc) {
			paranoid("2")(f)
			f.it(map[string]string{"Uid": "1001 1001 1001 " +
				"1001"})
		},
			refused("perf_event_open", unix.EACCES), Forbidden, "other-user", "it belongs to user 1001", "sudo goprof"},
		{"a container's filter", func(f *fakeProc) { paranoid("1")(f); f.as(map[string]string{"Seccomp": "2"}) },
			refused("perf_event_open", unix.EPERM), Forbidden, "perf-seccomp", "a seccomp filter on goprof itself",
			"seccomp=unconfined"},
		{"a filter that says that there is no such call", func(f *fakeProc) { f.as(with(root(), "Seccomp", "2")) },
			refused("perf_event_open", unix.ENOSYS), Forbidden, "perf-seccomp", "a seccomp filter", "--cap-add PERFMON"},
		{"a kernel without it", paranoid("2"), refused("perf_event_open", unix.ENOSYS), Unexplained, "no-perf",
			"has no perf_event", "--engine ptrace --pid 77"},
		{"no known rule", func(f *fakeProc) { paranoid("4")(f); f.as(root()) }, refused("perf_event_open", unix.EPERM),
			Forbidden, "perf-refused", "by no rule that goprof knows (perf_event_open: operation not permitted; " +
				"kernel.perf_event_paranoid is 4)", "--engine ptrace"},
		{"AppArmor", func(f *fakeProc) { paranoid("2")(f); f.as(root()); f.write("self/attr/current", "java (enforce)\n") },
			refused("perf_event_open", unix.EACCES), Forbidden, "perf-module", "AppArmor profile java (enforce), which may be",
			"dmesg"},
		{"locked memory", paranoid("1"), refused("mmap", unix.EPERM), Forbidden, "perf-memory", "locked memory",
			"sudo goprof"},
		{"descriptors", paranoid("1"), refused("perf_event_open", unix.EMFILE), Unexplained, "fd-limit", "open more files",
			"sudo prlimit --pid $$ --nofile=65536; goprof"},
		{"descriptors of root", func(f *fakeProc) { paranoid("1")(f); f.as(root()) },
			refused("perf_event_open", unix.EMFILE), Unexplained, "fd-limit", "open more files", "ulimit -n 65536; goprof"},
		{"it ended", paranoid("1"), refused("perf_event_open", unix.ESRCH), Gone, "", "", ""},
		{"anything else", paranoid("1"), refused("perf_event_open", unix.EIO), Unexplained, "perf-failed",
			"input/output error", "--engine ptrace"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFakeProc(t)
			f.it(nil)
			c.setup(f)
			got := Host{Proc: f.dir, Command: "goprof record --pid 77 --engine perf"}.Explain(77, c.err)
			if self, _ := (Host{Proc: f.dir}).status(0); self.EUID == 0 && strings.Contains(got.Remedy, "sudo goprof") {
				t.Errorf("root is told to become root: %q", got.Remedy)
			}
			if got.Class != c.class || c.cause != "" && got.Name != c.cause || !strings.Contains(got.Why, c.why) ||
				!strings.Contains(got.Remedy, c.remedy) {
				t.Errorf("%+v", got)
			}
		})
	}
}

// without is a root that lacks a capability.
func without(capability uint) map[string]string {
	all, _ := strconv.ParseUint(everything, 16, 64)
	return with(root(), "CapEff", strconv.FormatUint(all&^(1<<capability), 16))
}

// TestChooseEngine: an engine that is asked for by name is taken or refused. auto finds another one.
func TestChooseEngine(t *testing.T) {
	host.NeedPerf(t)
	pid := startSleep(t, "/bin/sleep")
	auto, why := session.PerfEngine, ""
	byPerf := perf.TryWide(pid) == nil
	if !byPerf {
		auto, why = session.PtraceEngine, "the engine is ptrace"
	}
	for _, c := range []struct {
		want session.EngineName
		most float64
		got  session.EngineName
		note string
	}{
		{session.PtraceEngine, 0, session.PtraceEngine, ""},
		{"", 0, session.PtraceEngine, ""},
		{session.PerfEngine, 0, session.PerfEngine, ""},
		{session.AutoEngine, 0, auto, why},
		{session.AutoEngine, 0.01, session.PtraceEngine, "--max-overhead"},
	} {
		got, err := Host{}.ChooseEngine(c.want, pid, c.most)
		if c.want == session.PerfEngine && !byPerf {
			if err == nil {
				t.Error("perf may not watch CPUs, and is taken")
			}
			continue
		}
		if err != nil || got.Engine != c.got || (got.Note != "") != (c.note != "") || !strings.Contains(got.Note, c.note) {
			t.Errorf("%q, at most %v: %+v, %v", c.want, c.most, got, err)
		}
	}
	if _, err := (Host{}).ChooseEngine(session.PerfEngine, 1<<30, 0); err == nil {
		t.Error("no process, no error")
	}
}

// TestChooseEngineForbidden is TestChooseEngine without rights: a refusal says why, and auto works.
func TestChooseEngineForbidden(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root, to give it up")
	}
	pid := itoa(startSleep(t, "/bin/sleep"))
	if level := (Host{}).perfParanoid(); level == 2 {
		report := runChild(t, nil, "dropperf", "engine", pid)
		wantLines(t, report, "ptrace: engine ptrace",
			"perf error: ... bpf-capability BPF programs need CAP_BPF and CAP_PERFMON, which goprof lacks",
			"auto: engine ptrace the engine is ptrace: BPF programs need CAP_BPF and CAP_PERFMON")
		wantLines(t, runChild(t, nil, "dropperf", "doctor", pid),
			"info perf: not needed: ... --engine perf would not work for process "+pid+": BPF programs need")
	}
	report := runChild(t, nil, "noperf", "engine", pid)
	wantLines(t, report, "ptrace: engine ptrace",
		"perf error: ... perf-seccomp a seccomp filter on goprof itself forbids perf_event_open",
		"auto: engine ptrace the engine is ptrace: a seccomp filter")
	wantLines(t, runChild(t, nil, "noperf", "doctor", pid),
		"info perf: not needed: ... --engine perf would not work for process "+pid+": ... seccomp")
}

// TestChooseEngineNested: in a PID namespace perf chooses no samples of a process. auto does not take it.
func TestChooseEngineNested(t *testing.T) {
	host.NeedPerf(t)
	if os.Getuid() != 0 {
		t.Skip("needs root, for namespaces")
	}
	inside := &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWPID | unix.CLONE_NEWNS}
	wantLines(t, runChild(t, inside, "proc", "engine", "1"),
		"perf error: ... perf-nested perf_event chooses samples by process numbers outside of containers",
		"auto: engine ptrace the engine is ptrace: perf_event chooses samples by process numbers outside of containers, and "+
			"goprof is in a PID namespace")
}
