//go:build linux

package diagnose

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"goprof/testdata/host"
	"goprof/testdata/jvmtest"
)

// TestJVMs: every JVM of the host is found, with what it tells of itself.
func TestJVMs(t *testing.T) {
	jar := jvmtest.PublicJar(t, "pet clinic.jar", "truth.Named")
	jvmtest.ForEachJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		plain := startJava(t, nil, jdk, "-XX:+UseSerialGC", "-Xmx64m", "-cp", filepath.Dir(jar), "-jar", jar,
			"--password=geheim", "two words")
		spinning := jvmtest.Start(t, jdk, "truth.Shares", "-XX:+UseParallelGC", "--", "1", "2")
		found := byPID(Host{}.JVMs())

		j := found[plain]
		if j == nil {
			t.Fatalf("pid %d is not found: %v", plain, found)
		}
		if j.Problem != nil || j.Version == "" || j.Collector != "Serial" || j.Main != jar || j.Name() != "pet clinic.jar" {
			t.Errorf("%+v", j)
		}
		if !slices.Equal(j.Args, []string{"--password=geheim", "two words"}) || !slices.Contains(j.Options, "-Xmx64m") {
			t.Errorf("args %q, options %q", j.Args, j.Options)
		}
		if major := strconv.Itoa(jdk.Version); !strings.HasPrefix(j.Version, major) &&
			!strings.HasPrefix(j.Version, "1."+major) {
			t.Errorf("version %q of a JDK %s", j.Version, major)
		}
		if want := jdk.Vendor(t); j.Vendor != want {
			t.Errorf("vendor %q, want %q", j.Vendor, want)
		}
		if j.UID != os.Getuid() || j.InnerPID != 0 || j.Threads < 5 || j.CPU <= 0 || j.Uptime <= 0 {
			t.Errorf("%+v", j)
		}
		if s := found[spinning.PID]; s == nil || s.Collector != "Parallel" || s.Main != "truth.Shares" {
			t.Errorf("%+v", s)
		}
		// On a busy machine both JVMs have done little but begin so far.
		host.WaitFor(t, "the one that spins has more of the CPUs", func() bool {
			now := byPID(Host{}.JVMs())
			s, j := now[spinning.PID], now[plain]
			return s != nil && j != nil && s.Share > j.Share
		})
	})
}

// TestMatch: the main class or jar counts. The path and the arguments do not.
func TestMatch(t *testing.T) {
	jar := jvmtest.PublicJar(t, "PetClinic.jar", "truth.Named")
	jdk := jvmtest.JDKs(t)[0]
	first := startJava(t, nil, jdk, "-jar", jar, "zebra")
	second := startJava(t, nil, jdk, "-cp", jar, "truth.Named", "petclinic")
	for part, want := range map[string][]int{
		"petclinic":            {first},
		"CLINIC.J":             {first},
		"truth.named":          {second},
		"zebra":                nil,
		filepath.Dir(jar):      nil,
		"no such thing at all": nil,
	} {
		var got []int
		for _, j := range (Host{}).Match(part) {
			if j.PID == first || j.PID == second { // other JVMs of these names may run on this machine
				got = append(got, j.PID)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q: %v, want %v", part, got, want)
		}
	}
}

// TestJVMInContainer: a JVM in a pid namespace has two numbers.
func TestJVMInContainer(t *testing.T) {
	host.NeedRoot(t)
	jdk := jvmtest.JDKs(t)[0]
	jar := jvmtest.PublicJar(t, "app.jar", "truth.Named")
	pid := startJava(t, &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID}, jdk, "-jar", jar)
	j := byPID(Host{}.JVMs())[pid]
	if j == nil || j.InnerPID != 1 || j.Problem != nil || j.Name() != "app.jar" {
		t.Fatalf("%+v", j)
	}
}

// TestJVMsOfOthers: a user that may not look into a JVM still sees that the JVM is there, and why there is no more
// to see.
func TestJVMsOfOthers(t *testing.T) {
	host.NeedRoot(t)
	jdk := jdkOfNobody(t)
	jar := jvmtest.PublicJar(t, "app.jar", "truth.Named")
	pid := startJava(t, nil, jdk, "-Xmx64m", "-jar", jar)
	theirs := startJava(t, asNobody, jdk, "-Xmx64m", "-jar", jar)
	out := runChild(t, asNobody, "list")
	for want, line := range map[int]string{
		pid:    "other-user app.jar",
		theirs: "- app.jar",
	} {
		if !strings.Contains(out, strconv.Itoa(want)+" "+line+"\n") {
			t.Errorf("%d should be %q:\n%s", want, line, out)
		}
	}
}

// TestJVMsUntouched: listing JVMs takes no system call that can stop a thread. The child's seccomp filter kills the
// child at its first ptrace.
func TestJVMsUntouched(t *testing.T) {
	jdk := jvmtest.JDKs(t)[0]
	jvm := jvmtest.Start(t, jdk, "truth.Named")
	out := runChild(t, nil, "noptrace", "list")
	if want := strconv.Itoa(jvm.PID) + " - truth.Named\n"; !strings.Contains(out, want) {
		t.Errorf("no %q:\n%s", want, out)
	}
}

func TestParseJavaCommand(t *testing.T) {
	for line, want := range map[string]string{
		"java Main": "Main | | ",
		"java -Xmx1g -cp a:b -Dx=y pkg.Main 1 -jar":   "pkg.Main | 1 -jar | -Xmx1g -cp a:b -Dx=y",
		"java -jar a.jar x":                           "a.jar | x | ",
		"java -p mods -m mod/pkg.Main x":              "mod/pkg.Main | x | -p mods",
		"java --module=mod/pkg.Main":                  "mod/pkg.Main | | ",
		"java --add-opens a/b=ALL-UNNAMED @file Main": "Main | | --add-opens a/b=ALL-UNNAMED @file",
		"java @file":                      " | | @file",
		"/usr/sbin/shopd libjvm.so -x A":  "shopd | libjvm.so -x A | ",
		"shopd":                           "shopd | | ",
		"/usr/bin/python3 shop.py secret": "shop.py | secret | ",
		"python3 -c code":                 "python3 | -c code | ",
		"jexec -Xmx1g -jar a.jar x":       "a.jar | x | -Xmx1g",
		"java -cp":                        " | | -cp",
		"java -jar":                       " | | ",
		"java":                            " | | ",
		"":                                " | | ",
		"java --class-path=x --enable-preview Main.java": "Main.java | | --class-path=x --enable-preview",
	} {
		c := parseJavaCommand(strings.Fields(line))
		got := c.main + " | " + strings.Join(c.args, " ")
		got = strings.TrimSuffix(got, " ") + " | " + strings.Join(c.options, " ")
		if got != want {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}

func TestSplitCommand(t *testing.T) {
	for _, c := range []struct {
		name, command string
		argv          []string
		main          string
		args          []string
	}{
		{"plain", "pkg.Main a b", []string{"java", "pkg.Main", "a", "b"}, "pkg.Main", []string{"a", "b"}},
		{"blanks", "my app.jar a b", []string{"java", "-jar", "my app.jar", "a b"}, "my app.jar", []string{"a b"}},
		{"argument file", "pkg.Main a b", []string{"java", "@file"}, "pkg.Main", []string{"a", "b"}},
		{"no command line", "pkg.Main", nil, "pkg.Main", []string{}},
		{"nothing", " ", nil, "", nil},
		{"as long, but another", "pkg.Main a", []string{"java", "pkg.Main", "b"}, "pkg.Main", []string{"a"}},
		{"empty words", "pkg.Main ", []string{"java", "", "pkg.Main", ""}, "pkg.Main", []string{""}},
	} {
		main, args := splitCommand(c.command, c.argv)
		if main != c.main || !slices.Equal(args, c.args) {
			t.Errorf("%s: %q %q, want %q %q", c.name, main, args, c.main, c.args)
		}
	}
}

// TestSplitCommandOfMany: half a million equal words take little time. Work that is repeated for each of them would
// take hours.
func TestSplitCommandOfMany(t *testing.T) {
	words := slices.Repeat([]string{"a"}, maxCommandLine/2)
	if main, args := splitCommand(strings.Join(words, " ")+" b", words); main != "a" || len(args) != len(words) {
		t.Errorf("%q and %d words", main, len(args))
	}
}

func byPID(jvms []JVM) map[int]*JVM {
	m := map[int]*JVM{}
	for i := range jvms {
		m[jvms[i].PID] = &jvms[i]
	}
	return m
}

// jdkOfNobody is a JDK that every user may run. The JDKs that scripts/jdks.sh fetches lie in the home of the user
// that fetched them.
func jdkOfNobody(t *testing.T) jvmtest.JDK {
	t.Helper()
	for _, jdk := range jvmtest.JDKs(t) {
		cmd := exec.Command(jdk.Tool("java"), "-version")
		cmd.SysProcAttr = asNobody
		if cmd.Run() == nil {
			return jdk
		}
	}
	t.Skip("needs a JDK that user nobody may run")
	return jvmtest.JDK{}
}

// startJava starts a test program with these attributes, waits until it is ready and returns its pid.
func startJava(t *testing.T, attr *syscall.SysProcAttr, jdk jvmtest.JDK, args ...string) int {
	t.Helper()
	cmd := exec.Command(jdk.Tool("java"), args...)
	cmd.Dir = "/"
	cmd.SysProcAttr = attr
	return host.StartReady(t, cmd)
}

// TestJVMThatHangs: the address space of a process cannot be read now. That does not hold up the list. A pipe
// without a writer stands for the process's maps.
func TestJVMThatHangs(t *testing.T) {
	f := newFakeProc(t)
	for _, p := range []struct {
		pid  int
		comm string
	}{{77, "java"}, {78, "nginx"}} {
		dir := itoa(p.pid)
		f.process(dir, p.pid, map[string]string{"Name": p.comm})
		f.write(dir+"/stat", dir+" ("+p.comm+") S 1 7 7 0 -1 0 1 0 0 0 250 50 0 0 20 0 33 0 12345 4096 10\n")
		pipe := filepath.Join(f.dir, dir, "maps")
		if err := syscall.Mkfifo(pipe, 0o600); err != nil {
			t.Fatal(err)
		}
		// At the end the waiting goroutines go on.
		t.Cleanup(func() {
			if w, err := os.OpenFile(pipe, os.O_RDWR, 0); err == nil {
				w.Close()
			}
		})
	}
	found := Host{Proc: f.dir}.JVMs()
	if len(found) != 1 || found[0].PID != 77 || found[0].Problem == nil || found[0].Problem.Name != "hangs" {
		t.Errorf("%+v", found)
	}
}

// TestHungProcessIsAskedOnce: however often goprof looks, one goroutine waits for a process that hangs. Once the
// wait is over, goprof looks at the process again.
func TestHungProcessIsAskedOnce(t *testing.T) {
	const pid = 1 << 30 // no process has this number
	release, ended := make(chan struct{}), make(chan struct{})
	slow := func() (JVM, bool) {
		defer close(ended)
		<-release
		return JVM{}, true
	}
	given := func() (JVM, bool) { return JVM{PID: pid}, false }
	if jvm, ok := inTime(pid, time.Millisecond, slow, given); ok || jvm.PID != pid {
		t.Fatalf("%+v %v", jvm, ok)
	}
	if _, waits := hung.Load(pid); !waits {
		t.Fatal("it would be asked again")
	}
	close(release)
	<-ended
	host.WaitFor(t, "forgotten", func() bool { _, waits := hung.Load(pid); return !waits })
	if jvm, ok := inTime(pid, time.Minute, func() (JVM, bool) { return JVM{PID: 7}, true }, given); !ok || jvm.PID != 7 {
		t.Errorf("%+v %v", jvm, ok)
	}
}
