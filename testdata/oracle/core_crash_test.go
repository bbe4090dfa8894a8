//go:build linux

package oracle

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"goprof/process"
	"goprof/profile"
	"goprof/session"
	"goprof/testdata/host"
	"goprof/testdata/jvmtest"
	"goprof/triage/autopsy"
	"goprof/triage/hserr"
)

type causes []profile.FindingID

// crashes are the ways in which truth.Crash is made to die.
var crashes = []struct {
	name    string
	command string         // of which it dies, or that sets the stage for a signal
	signal  syscall.Signal // that is sent; 0: it crashes by itself
	to      string         // the thread that gets it
	died    string         // that thread in the core; empty where it is none of Java's
	cause   string         // the signal behind the abort that HotSpot ends in
	frame   string         // a part of the name of one of the uppermost frames from the fault on
	finding causes
}{
	{"in libjvm", "vm", 0, "", "main", "SIGSEGV", "putLong", causes{profile.UnsafeAccess}},
	// The access is inlined as an instruction of put, with frames of Unsafe or without.
	{"in compiled code", "compiled", 0, "", "main", "SIGSEGV", "truth.Crash.put", causes{profile.CompiledCrash,
		profile.UnsafeAccess}},
	{"in native code", "native", 0, "", "main", "SIGSEGV", "inflateEnd", causes{profile.NativeCrash}},
	{"SIGSEGV sent", "", unix.SIGSEGV, "waiter-20", "waiter-20", "SIGSEGV", "park", causes{profile.SignalSent}},
	{"SIGABRT sent", "", unix.SIGABRT, "waiter-10", "waiter-10", "", "", causes{profile.SignalSent}},
	{"the collector", "collect", unix.SIGSEGV, "GC Thread#0", "", "SIGSEGV", "", causes{profile.SignalSent}},
}

// TestKernelCores kills JVMs in several ways, and reads the cores that the kernel writes of them with its default
// coredump_filter, and with what HotSpot sets: the thread that died comes first, with the signal and the frame that it
// met; threads that have stood still for long have the frames that they had while they lived; and triage tells the
// cause. In make test it kills one JVM.
func TestKernelCores(t *testing.T) {
	t.Parallel()
	host.NeedRoot(t)
	needKernelCores(t)
	jvmtest.ForNewestJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		for i := range crashes {
			if !longForm && i > 0 {
				break
			}
			t.Run(crashes[i].name, func(t *testing.T) {
				kernelCore(t, jdk, i, "-XX:+UnlockDiagnosticVMOptions", "-XX:-DumpPrivateMappingsInCore")
				if longForm {
					kernelCore(t, jdk, i)
				}
			})
		}
	})
}

// needKernelCores skips where the kernel gives cores to a program, or puts them elsewhere than where a process stands.
func needKernelCores(t *testing.T) {
	t.Helper()
	text, err := os.ReadFile("/proc/sys/kernel/core_pattern")
	pattern := strings.TrimSpace(string(text))
	if err != nil || !strings.HasPrefix(pattern, "core") || strings.ContainsAny(pattern, "/@") {
		t.Skipf("the kernel writes no core files into a process's folder: core_pattern is %q", pattern)
	}
}

// kernelCore kills a JVM, and compares its core with what it was.
func kernelCore(t *testing.T, jdk jvmtest.JDK, which int, flags ...string) {
	t.Helper()
	c := &crashes[which]
	if jdk.Version == 8 && c.command == "collect" {
		t.Skip("up to 8 the JVM gives its collector's threads no names that the kernel knows")
	}
	if jdk.Version == 8 { // it has no such flag, and leaves the kernel's filter as it is
		flags = nil
	}
	jvm := jvmtest.Start(t, jdk, "truth.Crash", append(crashFlags(jdk), flags...)...)
	unlimited := unix.Rlimit{Cur: unix.RLIM_INFINITY, Max: unix.RLIM_INFINITY}
	if err := unix.Prlimit(jvm.PID, unix.RLIMIT_CORE, &unlimited, nil); errors.Is(err, unix.EPERM) {
		t.Skip("this user may not permit another process to leave a core: ", err)
	} else if err != nil {
		t.Fatal(err)
	}
	dir, err := os.Readlink(filepath.Join("/proc", strconv.Itoa(jvm.PID), "cwd"))
	if err != nil {
		t.Fatal(err)
	}
	before := standing(t, jvm.PID)
	if c.signal == 0 {
		jvm.Die(c.command)
	} else {
		if c.command != "" {
			jvm.Command(c.command)
		}
		if err := unix.Tgkill(jvm.PID, threadCalled(t, jvm.PID, c.to), c.signal); err != nil {
			t.Fatal(err)
		}
		jvm.Die("")
	}
	cores, _ := filepath.Glob(filepath.Join(dir, "core*"))
	if len(cores) != 1 {
		t.Fatalf("%d core files: %s", len(cores), jvm.Stderr())
	}
	defer os.Remove(cores[0])
	began := time.Now()
	dead, found := autopsyOf(t, cores[0])
	took := time.Since(began)
	keepCore(t, cores[0], fmt.Sprintf("%d-%s-%d", jdk.Version, c.name, len(flags)), dead)
	sameStanding(t, before, dead.Threads, c.command == "collect")
	died := &dead.Threads[0]
	if !died.Died || c.died != "" && died.Name != c.died || c.died == "" && died.Java {
		t.Errorf("%q died", died.Name)
	}
	fault := dead.Core.Cause
	if c.cause == "" {
		if fault != nil {
			t.Errorf("a cause: %+v", fault)
		}
		fault = dead.Core.Signal
	}
	if fault == nil || c.cause != "" && fault.Name != c.cause || fault.Frame < 0 {
		t.Fatalf("signal %+v, cause %+v", dead.Core.Signal, dead.Core.Cause)
	}
	if !nearTop(died.Stack.Frames[fault.Frame:], c.frame) {
		t.Errorf("the fault's frame is %+v", died.Stack.Frames[fault.Frame].Func)
	}
	if len(found.Findings) == 0 || !slices.Contains(c.finding, found.Findings[0].ID) {
		t.Errorf("triage: %+v", found.Findings)
	}
	checkCrashFile(t, dir, jvm.PID, found, c.cause != "")
	if longForm {
		t.Logf("files without a build id: %+v", dead.Core.Unproven)
		besideJHSDB(t, jdk, cores[0], dead, took)
	}
}

// crashFlags let truth.Crash do what it does.
func crashFlags(jdk jvmtest.JDK) (flags []string) {
	flags = []string{"-Xmx64m"}
	if jdk.Version > 8 {
		flags = append(flags, "--add-opens", "java.base/java.util.zip=ALL-UNNAMED")
	}
	if jdk.Version > 22 {
		flags = append(flags, "--sun-misc-unsafe-memory-access=allow")
	}
	return flags
}

// standing are the threads that never move, as they are found live: twice the same.
func standing(t *testing.T, pid int) (found map[int]profile.ThreadDump) {
	t.Helper()
	s := attach(t, pid)
	defer s.Close()
	host.WaitFor(t, "three threads stand", func() bool {
		live, err := s.Dump(session.DumpOptions{Locks: true})
		if err != nil {
			t.Fatal(err)
		}
		before, same := found, 0
		found = map[int]profile.ThreadDump{}
		for i := range live {
			if strings.HasPrefix(live[i].Name, "waiter-") {
				a := before[live[i].TID]
				found[live[i].TID] = live[i]
				same += b2i(a.TID != 0 && differs(&a, &live[i]) == "")
			}
		}
		return same == 3
	})
	return found
}

// sameStanding compares them with what the core has of them. One that was killed has frames of the signal on top, and
// its system call was to be made again: its pc is at that, not behind it (arch/x86/kernel/signal.c, handle_signal).
// While a collector moves objects, names and what is locked may not be readable: then the stacks are compared.
func sameStanding(t *testing.T, before map[int]profile.ThreadDump, dead []profile.ThreadDump, moving bool) {
	t.Helper()
	for i := range dead {
		b := dead[i]
		a, ok := before[b.TID]
		if !ok {
			continue
		}
		delete(before, b.TID)
		if moving {
			stack := b.Stack
			b = a
			b.Stack = stack
		}
		if n := len(a.Stack.Frames) - 1; b.Died && len(b.Stack.Frames) > n {
			a.Stack.Frames, b.Stack.Frames = a.Stack.Frames[1:], b.Stack.Frames[len(b.Stack.Frames)-n:]
		}
		if why := differs(&a, &b); why != "" {
			t.Errorf("%q: %s", a.Name, why)
		}
	}
	if len(before) > 0 {
		t.Errorf("%d threads that stood are not in the core", len(before))
	}
}

// nearTop is how far below the fault a frame may lie that tells what it was.
func nearTop(frames []profile.Frame, name string) bool {
	for i := range frames[:min(len(frames), 10)] {
		if f := frames[i].Func; f != nil && strings.Contains(f.Name, name) {
			return true
		}
	}
	return false
}

// autopsyOf dumps a core, and judges it.
func autopsyOf(t *testing.T, name string) (*profile.Dump, *profile.Triage) {
	t.Helper()
	d, j := openCore(t, name, process.CoreOptions{})
	defer j.Close()
	facts := j.Facts()
	found := autopsy.Judge(d, facts, name)
	if file, err := os.Open(crashFileOf(filepath.Dir(name), d.PID)); err == nil {
		defer file.Close()
		report, err := hserr.Parse(file)
		if err != nil {
			t.Fatal(err)
		}
		autopsy.Beside(found, d, facts, report, filepath.Base(file.Name()))
	}
	return d, found
}

func crashFileOf(dir string, pid int) string {
	return filepath.Join(dir, fmt.Sprintf("hs_err_pid%d.log", pid))
}

// checkCrashFile: where the JVM itself has caught the signal, it has left a crash file that tells the same as the core.
func checkCrashFile(t *testing.T, dir string, pid int, found *profile.Triage, caught bool) {
	t.Helper()
	if len(found.Findings) == 0 {
		return // the caller has said so
	}
	_, err := os.Stat(crashFileOf(dir, pid))
	says := slices.ContainsFunc(found.Findings[0].Evidence, func(line string) bool {
		return strings.HasPrefix(line, "hs_err_pid") && strings.Contains(line, " says the same: process ")
	})
	if caught != (err == nil) || caught != says {
		t.Errorf("crash file: %v; %q", err, found.Findings[0].Evidence)
	}
}

// threadCalled finds a thread by what the kernel calls it, which is 15 bytes.
func threadCalled(t *testing.T, pid int, name string) int {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		tasks, _ := filepath.Glob(filepath.Join("/proc", strconv.Itoa(pid), "task", "*", "comm"))
		for _, task := range tasks {
			if comm, _ := os.ReadFile(task); strings.TrimSpace(string(comm)) == name[:min(len(name), 15)] {
				tid, _ := strconv.Atoi(filepath.Base(filepath.Dir(task)))
				return tid
			}
		}
	}
	t.Fatalf("no thread %q", name)
	return 0
}

// besideJHSDB counts on how many threads the JDK's own reader of cores agrees, and prints what both took. It is no
// judge: it shows nothing of threads that ran, and often fails.
func besideJHSDB(t *testing.T, jdk jvmtest.JDK, core string, dead *profile.Dump, took time.Duration) {
	t.Helper()
	if jdk.Version == 8 {
		return // it came with 9
	}
	began := time.Now()
	out, err := exec.Command(jdk.Tool("jhsdb"), "jstack", "--core", core, "--exe", jdk.Tool("java")).Output()
	var status *exec.ExitError
	if err != nil && !errors.As(err, &status) {
		t.Log("there is no jhsdb: ", err)
		return
	}
	theirs := jhsdbFrames(string(out))
	same, differ := 0, 0
	for i := range dead.Threads {
		th := &dead.Threads[i]
		frames, ok := theirs[th.Name]
		if !th.Java || !ok || len(frames) == 0 {
			continue
		}
		if slices.Equal(frames, javaLines(th)) {
			same++
		} else {
			differ++
			t.Logf("jhsdb has of %q %q, goprof %q", th.Name, frames, javaLines(th))
		}
	}
	t.Logf("jhsdb: %v, %d threads with frames, %d of them the same as goprof's; goprof: %v, %d threads", time.Since(began),
		same+differ, same, took, len(dead.Threads))
}

var (
	jhsdbThread = regexp.MustCompile(`^"(.*)" #\d+ `)
	jhsdbFrame  = regexp.MustCompile(`^ - ([^(]+)\([^)]*\) @bci=\d+(?:, line=(\d+))?`)
)

// jhsdbFrames are the frames of each thread in jhsdb's words: method and line.
func jhsdbFrames(text string) map[string][]string {
	frames, name := map[string][]string{}, ""
	for line := range strings.Lines(text) {
		if m := jhsdbThread.FindStringSubmatch(line); m != nil {
			name = m[1]
		} else if m := jhsdbFrame.FindStringSubmatch(line); m != nil {
			frames[name] = append(frames[name], m[1]+":"+cmp.Or(m[2], "0"))
		}
	}
	return frames
}

// javaLines are the Java frames of a thread in the same words.
func javaLines(t *profile.ThreadDump) (lines []string) {
	for i := range t.Stack.Frames {
		switch f := &t.Stack.Frames[i]; f.Kind {
		case profile.Interpreted, profile.C1, profile.C2, profile.Inlined, profile.NativeMethod:
			lines = append(lines, f.Func.Name+":"+strconv.Itoa(int(max(f.Line, 0))))
		}
	}
	return lines
}
