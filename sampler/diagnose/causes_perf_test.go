//go:build linux

package diagnose

import (
	"os"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"goprof/sampler"
	"goprof/sampler/session"
	"goprof/testdata/host"
)

// TestExplainPerf: why perf_event may not be used, on hosts unlike this machine.
func TestExplainPerf(t *testing.T) {
	refused := func(call string, e error) error { return &sampler.PerfError{Call: call, Err: e} }
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
			"kernel.perf_event_paranoid is 3: only who has CAP_PERFMON", "sysctl kernel.perf_event_paranoid=1"},
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
		{"lockdown", func(f *fakeProc) { paranoid("4")(f); f.as(root()) }, refused("perf_event_open", unix.EPERM), Forbidden,
			"perf-module",
			"a security module", "--engine ptrace"},
		{"locked memory", paranoid("1"), refused("mmap", unix.EPERM), Forbidden, "perf-memory", "locked memory",
			"sudo goprof"},
		{"descriptors", paranoid("1"), refused("perf_event_open", unix.EMFILE), Unexplained, "fd-limit", "open more files",
			"ulimit -n"},
		{"it ended", paranoid("1"), refused("perf_event_open", unix.ESRCH), Gone, "", "", ""},
		{"anything else", paranoid("1"), refused("perf_event_open", unix.EIO), Unexplained, "perf-failed",
			"input/output error", "--engine ptrace"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFakeProc(t)
			f.it(nil)
			c.setup(f)
			got := Host{Proc: f.dir, Command: "goprof record --pid 77 --engine perf"}.Explain(77, c.err)
			if got.Class != c.class || c.cause != "" && got.Name != c.cause || !strings.Contains(got.Why, c.why) ||
				!strings.Contains(got.Remedy, c.remedy) {
				t.Errorf("%+v", got)
			}
		})
	}
}

// TestChooseEngine: an engine that is asked for by name is taken or refused. auto finds another one.
func TestChooseEngine(t *testing.T) {
	host.NeedPerf(t)
	pid := startSleep(t, "/bin/sleep")
	auto, why := session.PerfEngine, ""
	if sampler.TryWide(sampler.PerfPower{Kernel: true}) != nil {
		auto, why = session.PtraceEngine, "single threads"
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
			"perf: engine perf no samples of threads that are in the kernel (kernel.perf_event_paranoid is 2)",
			"auto: engine ptrace the engine is ptrace: perf_event may not look at threads that are in the kernel")
		wantLines(t, runChild(t, nil, "dropperf", "doctor", pid),
			"info perf: --engine perf works for process "+pid+", but not for threads that are in the kernel")
	}
	report := runChild(t, nil, "noperf", "engine", pid)
	wantLines(t, report, "ptrace: engine ptrace",
		"perf error: ... perf-seccomp a seccomp filter on goprof itself forbids perf_event_open",
		"auto: engine ptrace the engine is ptrace: a seccomp filter")
	wantLines(t, runChild(t, nil, "noperf", "doctor", pid),
		"info perf: not needed: ... --engine perf would not work for process "+pid+": ... seccomp")
}

// TestChooseEngineNested: in a PID namespace perf can only watch single threads. auto does not take it.
func TestChooseEngineNested(t *testing.T) {
	host.NeedPerf(t)
	if os.Getuid() != 0 {
		t.Skip("needs root, for namespaces")
	}
	inside := &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWPID | unix.CLONE_NEWNS}
	wantLines(t, runChild(t, inside, "proc", "engine", "1"),
		"perf: engine perf ",
		"auto: engine ptrace the engine is ptrace: perf_event can watch only single threads, because goprof is in a PID namespace")
}
