//go:build linux

package diagnose

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"goprof/testdata/host"
	"goprof/testdata/jvmtest"
)

// reported is a report as text: "verdict name: text
// remedy".
func reported(r Report) string {
	var b strings.Builder
	for _, c := range r.Checks {
		fmt.Fprintf(&b, "%s %s: %s | %s\n", c.Verdict, c.Name, c.Text, c.Remedy)
	}
	if r.Cause != nil {
		fmt.Fprintf(&b, "cause %s %s\n", r.Cause.Class, r.Cause.Name)
	}
	return b.String()
}

// wantLines demands a line with each of the beginnings, and after the beginning each of the parts.
func wantLines(t *testing.T, report string, lines ...string) {
	t.Helper()
	for _, want := range lines {
		parts := strings.Split(want, " ... ")
		found := false
		for line := range strings.Lines(report) {
			ok := strings.HasPrefix(line, parts[0])
			for _, p := range parts[1:] {
				ok = ok && strings.Contains(line, p)
			}
			found = found || ok
		}
		if !found {
			t.Errorf("no line %q in\n%s", want, report)
		}
	}
	for line := range strings.Lines(report) { // "ok  perf  not permitted" was once such a line
		if strings.HasPrefix(line, "ok ") && contradicts.MatchString(line) {
			t.Errorf("a line contradicts itself: %s", line)
		}
	}
}

// contradicts is what no line that begins with ok may say.
var contradicts = regexp.MustCompile(`not permitted|cannot|refused|forbidden|failed|does not work`)

// TestExamineHost: what the doctor says of hosts unlike this machine.
func TestExamineHost(t *testing.T) {
	for _, c := range []struct {
		name  string
		setup func(f *fakeProc)
		want  []string
	}{
		{"root", func(f *fakeProc) { f.as(root()); f.yama("1") }, []string{
			"ok capabilities: CAP_SYS_PTRACE", "ok yama: ... is 1, which CAP_SYS_PTRACE overrides", "ok map_files",
			"ok namespaces", "ok seccomp: no filter", "ok security module: none",
			"ok JVMs: none"}},
		{"a user", func(f *fakeProc) {}, []string{
			"warn capabilities: ... only processes of user 1000 ... sudo goprof", "ok yama: not in this kernel",
			"warn map_files: ... sudo "}},
		{"a user under yama 1", func(f *fakeProc) { f.yama("1") },
			[]string{"warn yama: ... only a parent ... sysctl kernel.yama.ptrace_scope=0"}},
		{"a user under yama 2", func(f *fakeProc) { f.yama("2") },
			[]string{"warn yama: ... only programs with CAP_SYS_PTRACE"}},
		{"yama 0", func(f *fakeProc) { f.yama("0") }, []string{"ok yama: ... is 0"}},
		{"yama 3", func(f *fakeProc) { f.as(root()); f.yama("3") },
			[]string{"fail yama: ... is 3 ... reboot", "cause forbidden yama"}},
		{"container", func(f *fakeProc) {
			f.as(map[string]string{"Uid": "0 0 0 0", "CapEff": "a80425fb", "CapBnd": "a80425fb", "Seccomp": "2"})
			f.link("self/ns/pid", "pid:[7]")
			f.write("self/attr/current", "docker-default (enforce)\n")
		}, []string{
			"warn capabilities: root without ... --cap-add SYS_PTRACE",
			"warn namespaces: goprof is in a container (own pid namespace) ... --pid container:NAME",
			"warn security module: ... docker-default ... apparmor=unconfined", "ok seccomp: a filter is on, and lets"}},
		{"a label that does not confine", func(f *fakeProc) { f.write("self/attr/current", "unconfined_u:unconfined_r\x00") },
			[]string{
				"ok security module: unconfined_u:unconfined_r"}},
		{"old kernel", func(f *fakeProc) { f.write("sys/kernel/osrelease", "4.18.0-553.el8.x86_64\n") },
			[]string{"ok kernel: Linux 4.18.0-553.el8.x86_64"}},
		{"new kernel", func(f *fakeProc) { f.write("sys/kernel/osrelease", "6.18\n") }, []string{"ok kernel: Linux 6.18"}},
		{"unknown kernel", func(f *fakeProc) {}, []string{"warn kernel: ... cannot be read"}},
		{"a JVM that is not ours", func(f *fakeProc) {
			f.it(map[string]string{"Uid": "1001 1001 1001 1001"})
			f.write("77/stat", "77 (java) S 1 7 7 0 -1 0 1 0 0 0 250 50 0 0 20 0 33 0 12345 4096 10\n")
			f.write("77/cmdline", "/bin/java\x00-jar\x00app.jar")
		}, []string{"warn JVMs: 1, of which 0 can be recorded; not 77: it belongs to user 1001 ... goprof doctor --pid 77"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFakeProc(t)
			c.setup(f)
			r := Host{Proc: f.dir}.Examine(0)
			report := reported(r)
			wantLines(t, report, c.want...)
			if failed := strings.Contains("\n"+report, "\nfail "); failed != (r.Cause != nil) {
				t.Errorf("failed %t, cause %v\n%s", failed, r.Cause, report)
			}
		})
	}
}

// TestExamineJVM: a JVM can be recorded, and the doctor says that all is well. It makes no system call that can stop
// a thread: the filter would kill the child.
func TestExamineJVM(t *testing.T) {
	jvmtest.ForEachJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		jvm := jvmtest.Start(t, jdk, "truth.Named")
		report := runChild(t, nil, "noseize", "doctor", itoa(jvm.PID))
		wantLines(t, report, "ok process: "+itoa(jvm.PID)+" (java)", "ok tracer: no process", "ok fields: ", "ok threads: ",
			"ok seccomp: a filter is on, and lets ptrace and process_vm_readv pass")
		if jdk.Stripped(t) {
			wantLines(t, report, "warn symbols: ... libjvm.so is stripped")
		} else {
			wantLines(t, report, "ok symbols: libjvm.so: ")
		}
		wantLines(t, report, "ok JVM: ... "+itoa(jdk.Version)+" ... tested")
		if strings.Contains("\n"+report, "\nfail ") || strings.Contains(report, "cause ") {
			t.Error(report)
		}
	})
}

// TestExamineTroubled: what keeps goprof from recording one process.
func TestExamineTroubled(t *testing.T) {
	jdk := jvmtest.JDKs(t)[0]
	jvm := jvmtest.Start(t, jdk, "truth.Named")
	t.Run("traced", func(t *testing.T) {
		tracer := startChild(t, nil, "traceall", itoa(jvm.PID))
		wantLines(t, reported(Host{}.Examine(jvm.PID)), "ok process: ",
			fmt.Sprintf("fail tracer: process %d ( ... kill %d", tracer, tracer), "cause forbidden traced", "ok JVM: ")
	})
	t.Run("partly traced", func(t *testing.T) {
		jvm := jvmtest.Start(t, jdk, "truth.Named")
		tracer := startChild(t, nil, "trace", itoa(jvm.PID))
		report := reported(Host{}.Examine(jvm.PID))
		wantLines(t, report, fmt.Sprintf("warn tracer: process %d traces some ... kill %d", tracer, tracer))
		if strings.Contains(report, "cause ") {
			t.Error(report)
		}
	})
	t.Run("stopped", func(t *testing.T) {
		if err := syscall.Kill(jvm.PID, syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		defer syscall.Kill(jvm.PID, syscall.SIGCONT)
		host.WaitFor(t, "stopped", func() bool {
			s, _ := Host{}.status(jvm.PID)
			return s.State == 'T'
		})
		wantLines(t, reported(Host{}.Examine(jvm.PID)), "warn state: it is stopped by a signal ... kill -CONT", "ok JVM: ")
	})
	t.Run("no JVM", func(t *testing.T) {
		wantLines(t, reported(Host{}.Examine(startChild(t, nil, "sleep"))), "ok process: ", "fail JVM: it runs no JVM",
			"cause not a JVM not-java")
	})
	t.Run("no process", func(t *testing.T) {
		wantLines(t, reported(Host{}.Examine(endedPID(t))), "fail process: there is no such process ... goprof list",
			"cause no process no-process")
	})
	t.Run("seccomp", func(t *testing.T) {
		wantLines(t, runChild(t, nil, "seccomp", "doctor", itoa(jvm.PID)), "fail seccomp: ... seccomp=unconfined",
			"fail process: ", "cause forbidden seccomp")
	})
	t.Run("other user", func(t *testing.T) {
		host.NeedRoot(t)
		wantLines(t, runChild(t, asNobody, "doctor", itoa(jvm.PID)), "warn capabilities: ",
			"fail process: it belongs to user 0", "cause forbidden other-user")
	})
	t.Run("container", func(t *testing.T) {
		host.NeedRoot(t)
		pid := startJava(t, &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID}, jdk, "-jar",
			jvmtest.PublicJar(t, "app.jar", "truth.Named"))
		wantLines(t, reported(Host{}.Examine(pid)), "ok container: in its own pid namespace it is 1", "ok JVM: ")
	})
}

// TestExamineStripped: a libjvm.so without symbols is noticed, with the package that has them.
func TestExamineStripped(t *testing.T) {
	strip, err := exec.LookPath("strip")
	if err != nil {
		t.Skip("needs strip")
	}
	jdks := jvmtest.JDKs(t)
	home := linkedHome(t, jdks[len(jdks)-1]) // the newest JDK: older ones lie in other folders
	library := filepath.Join(home, "lib", "server", "libjvm.so")
	if out, err := exec.Command(strip, "--strip-unneeded", "-R", ".gnu_debuglink", library).CombinedOutput(); err != nil {
		t.Skipf("%v: %s", err, out)
	}
	pid := startJava(t, nil, jvmtest.JDK{Home: home}, "-cp", jvmtest.Classes(t), "truth.Named")
	report := reported(Host{}.Examine(pid))
	wantLines(t, report, "warn symbols: "+library+" is stripped ... debug", "ok JVM: ", "ok fields: ")
	if strings.Contains(report, "cause ") {
		t.Error(report)
	}
}

// linkedHome is a JDK made of links to another one, with copies of the files by which java finds its home.
func linkedHome(t *testing.T, jdk jvmtest.JDK) string {
	t.Helper()
	home := t.TempDir()
	own := []string{"bin/java", "lib/libjli.so", "lib/libjava.so", "lib/server/libjvm.so"}
	for _, dir := range []string{"bin", "lib/server"} {
		if err := os.MkdirAll(filepath.Join(home, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range own {
		host.CopyFile(t, filepath.Join(home, name), filepath.Join(jdk.Home, name))
	}
	for _, dir := range []string{".", "lib"} {
		files, err := os.ReadDir(filepath.Join(jdk.Home, dir))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			err := os.Symlink(filepath.Join(jdk.Home, dir, f.Name()), filepath.Join(home, dir, f.Name()))
			if err != nil && !errors.Is(err, fs.ErrExist) {
				t.Fatal(err)
			}
		}
	}
	return home
}

func TestCheckFields(t *testing.T) {
	var r Report
	checkFields(&r, []string{"thread names: JavaThread._threadObj", "locals: x"})
	wantLines(t, reported(r), "warn fields: ... thread names: JavaThread._threadObj", "warn fields: ... locals")
	if r.Cause != nil || len(r.Checks) != 2 {
		t.Errorf("%+v", r)
	}
}

func TestDebugPackage(t *testing.T) {
	for vendor, want := range map[string]string{
		"Debian": "sudo apt install openjdk-17-dbg", "Ubuntu": "sudo apt install openjdk-17-dbg",
		"Red Hat, Inc.":    "sudo dnf debuginfo-install java-17-openjdk-headless",
		"Eclipse Adoptium": "put libjvm.debuginfo, from the debug image of exactly this JDK, beside libjvm.so",
		"":                 "put libjvm.debuginfo, from the debug image of exactly this JDK, beside libjvm.so",
	} {
		if got := debugPackage(vendor, 17); got != want {
			t.Errorf("%q: %q", vendor, got)
		}
	}
}

func TestOlder(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{{"5.5.19", "5.6", true}, {"5.6", "5.6", false}, {"5.10.0-8-amd64", "5.6", false}, {"4.18", "5.6", true},
		{"6.1", "5.6", false}, {"5.6-rc1", "5.6", false}, {"", "5.6", true}, {"x.y", "5.6", true}, {"6", "5.6", false}} {
		if older(c.a, c.b) != c.want {
			t.Errorf("%q older than %q: want %t", c.a, c.b, c.want)
		}
	}
}
