//go:build linux

package oracle

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"maps"
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

	"goprof/profile"
	"goprof/session"
	"goprof/testdata/jvmtest"
)

// record records until ctx is done or the JVM ends, and holds the result to what is always true.
func record(t testing.TB, s *session.Session, ctx context.Context, opt session.RecordOptions) (*profile.Profile,
	profile.Summary) {
	t.Helper()
	if opt.Interval == 0 {
		opt.Interval = time.Millisecond
	}
	p, sum, err := s.Record(ctx, opt)
	if err != nil {
		t.Fatalf("a normal end is no error: %v", err)
	}
	checkAccount(t, &sum)
	var inTree int64
	p.Each(func(_ []profile.Frame, n int64) { inTree += n })
	if inTree != sum.Samples {
		t.Errorf("%d samples, but stacks for %d", sum.Samples, inTree)
	}
	return p, sum
}

// checkAccount: every look that was attempted has become something that has a name.
func checkAccount(t testing.TB, s *profile.Summary) {
	t.Helper()
	t = fact(t)
	var truncated, lost int64
	for _, n := range s.TruncatedBy {
		truncated += n
	}
	for _, n := range s.LostBy {
		lost += n
	}
	if s.Attempted != s.Whole+s.Truncated+s.Lost || s.Samples != s.Whole+s.Truncated || truncated != s.Truncated ||
		lost != s.Lost {
		t.Errorf("the account does not add up: %+v", *s)
	}
	if n := s.TruncatedBy[profile.Other.String()] + s.LostBy[profile.Other.String()]; n*20_000 > s.Attempted {
		t.Errorf("%d of %d looks came to something that has no name", n, s.Attempted)
	}
	stops := s.Looks == nil && s.Meta.Engine != profile.EnginePerf
	if s.Samples > 0 && stops && (s.Pauses.Count < s.Samples*99/100 || s.Pauses.P50 <= 0 ||
		s.Pauses.Max < s.Pauses.P99 || s.Pauses.P99 < s.Pauses.P50) {
		t.Errorf("pauses that cannot be: %+v", s.Pauses)
	}
}

// after is a context that is done so much later.
func after(t testing.TB, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

// untilEnough is a context for a recording that lasts so long, and on until there are so many samples: on a starved
// machine few come. It ends after two minutes in any case.
func untilEnough(t testing.TB, opt *session.RecordOptions, d time.Duration, samples int64) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d+2*time.Minute)
	t.Cleanup(cancel)
	visits := make(chan session.Visit)
	opt.Visits = visits
	began := time.Now()
	look := func(_ *profile.Profile, sum *profile.Summary) {
		if sum.Samples >= samples && time.Since(began) >= d {
			cancel()
		}
	}
	go func() {
		for ctx.Err() == nil {
			select {
			case visits <- look:
				time.Sleep(20 * time.Millisecond)
			case <-ctx.Done():
			}
		}
	}()
	return ctx
}

// TestRecordThreads: with Threads each stack begins with the thread that it is of.
func TestRecordThreads(t *testing.T) {
	t.Parallel()
	jvmtest.ForNewestJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		jvm := jvmtest.Start(t, jdk, "truth.Shares", "--", "2")
		opt := session.RecordOptions{Threads: true}
		p, sum := record(t, attach(t, jvm.PID), untilEnough(t, &opt, longEnough(time.Second), 200), opt)
		ours, labels := int64(0), map[string]bool{}
		p.Each(func(frames []profile.Frame, n int64) {
			label := frames[0].Func.Name
			labels[label] = true
			isOurs := strings.HasPrefix(label, "[shares-")
			runsShares := slices.ContainsFunc(frames, func(f profile.Frame) bool { return f.Func.Name == "truth.Shares.work" })
			if runsShares && !isOurs {
				t.Errorf("%d samples of truth.Shares.work are under %s", n, label)
			}
			if isOurs {
				ours += n
			}
		})
		for label := range labels {
			checkLabel(t, jvm.PID, label)
		}
		if ours == 0 || sum.Threads < 2 || sum.Threads > len(labels) {
			t.Errorf("%d of %d samples are of the busy threads; %d threads, labels %v", ours, sum.Samples, sum.Threads,
				slices.Sorted(maps.Keys(labels)))
		}
	})
}

var threadLabel = regexp.MustCompile(`^\[(.+) tid=([0-9]+)\]$`)

// checkLabel holds a label against the name that the kernel has for the thread: HotSpot gives it
// the first 15 bytes of Java's name, or since JDK 24 its beginning and its end with ".." between.
func checkLabel(t *testing.T, pid int, label string) {
	t.Helper()
	m := threadLabel.FindStringSubmatch(label)
	if m == nil {
		t.Errorf("%q is no thread", label)
		return
	}
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/comm", pid, m[2]))
	if err != nil {
		return // it has ended
	}
	name, comm := m[1], strings.TrimSpace(string(raw))
	begin, end, _ := strings.Cut(comm, "..")
	if !strings.HasPrefix(name, begin) || !strings.HasSuffix(name, end) {
		if !(name == "main" && comm == "java") { // the launcher's thread keeps the program's name
			t.Errorf("%s is %q to the kernel", label, comm)
		}
	}
}

// onceSampled does something when a recording has samples. It may be the end of the target.
func onceSampled(t *testing.T, opt *session.RecordOptions, do func()) {
	visits := make(chan session.Visit)
	opt.Visits = visits
	go func() {
		sampled := make(chan bool)
		for {
			select {
			case visits <- func(_ *profile.Profile, sum *profile.Summary) { sampled <- sum.Samples > 0 }:
			case <-t.Context().Done():
				return
			}
			if <-sampled {
				do()
				return
			}
			time.Sleep(20 * time.Millisecond)
		}
	}()
}

// TestRecordUntilTargetEnds: a target that ends, by itself or killed, is a normal end.
func TestRecordUntilTargetEnds(t *testing.T) {
	t.Parallel()
	ends := map[string]func(*jvmtest.JVM){"quits": (*jvmtest.JVM).Quit, "killed": (*jvmtest.JVM).Kill}
	jvmtest.ForNewestJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		for name, end := range ends {
			t.Run(name, func(t *testing.T) {
				jvm := jvmtest.Start(t, jdk, "truth.Shares")
				s := attach(t, jvm.PID)
				ended := make(chan struct{})
				var opt session.RecordOptions
				onceSampled(t, &opt, func() {
					defer close(ended)
					end(jvm)
				})
				_, sum := record(t, s, after(t, time.Minute), opt)
				select {
				case <-ended:
				case <-time.After(time.Minute):
					t.Fatalf("it was never told to end: %+v", sum)
				}
				if sum.Samples == 0 || sum.Meta.Duration > 50*time.Second {
					t.Errorf("%d samples in %v", sum.Samples, sum.Meta.Duration)
				}
			})
		}
	})
}

// execProgram becomes another program when it reads a line.
const execProgram = `
import java.lang.foreign.*;
import java.lang.invoke.MethodHandle;

public class Exec {
    static volatile long sink;

    public static void main(String[] args) throws Throwable {
        Linker linker = Linker.nativeLinker();
        MethodHandle execv = linker.downcallHandle(linker.defaultLookup().find("execv").get(),
            FunctionDescriptor.of(ValueLayout.JAVA_INT, ValueLayout.ADDRESS, ValueLayout.ADDRESS));
        Thread busy = new Thread(() -> { while (true) { sink++; } }, "busy");
        busy.start();
        System.out.println("READY");
        System.in.read();
        Arena arena = Arena.global();
        MemorySegment argv = arena.allocate(ValueLayout.ADDRESS, args.length + 1);
        for (int i = 0; i < args.length; i++) {
            argv.setAtIndex(ValueLayout.ADDRESS, i, arena.allocateFrom(args[i]));
        }
        int unused = (int) execv.invokeExact(arena.allocateFrom(args[0]), argv);
        throw new IllegalStateException("execv failed");
    }
}
`

// TestRecordUntilTargetExecs: what a process becomes by exec is not what was asked for.
func TestRecordUntilTargetExecs(t *testing.T) {
	t.Parallel()
	jvmtest.ForNewestJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		if jdk.Version < 22 {
			t.Skip("Java can call execv since JDK 22")
		}
		source := filepath.Join(t.TempDir(), "Exec.java")
		if err := os.WriteFile(source, []byte(execProgram), 0o600); err != nil {
			t.Fatal(err)
		}
		// It becomes a program that is as busy.
		cmd := exec.Command(jdk.Tool("java"), "--enable-native-access=ALL-UNNAMED", source, "/bin/sh", "-c",
			"while :; do :; done")
		stdin, pid := startCommand(t, cmd)
		s := attach(t, pid)
		var opt session.RecordOptions
		onceSampled(t, &opt, func() { io.WriteString(stdin, "go\n") })
		_, sum := record(t, s, after(t, time.Minute), opt)
		if sum.Samples == 0 || sum.Meta.Duration > 50*time.Second {
			t.Errorf("%d samples in %v", sum.Samples, sum.Meta.Duration)
		}
		if err := s.Process.Alive(); err == nil {
			t.Error("the process is thought to be what it was")
		}
	})
}

// startCommand starts a program and waits until it prints READY. It is killed at the test's end.
func startCommand(t *testing.T, cmd *exec.Cmd) (stdin io.Writer, pid int) {
	t.Helper()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "READY\n" {
		t.Fatalf("%q, %v", line, err)
	}
	return in, cmd.Process.Pid
}

// TestRecordOfStoppedJVM: nothing runs, nothing is sampled, nothing is woken.
func TestRecordOfStoppedJVM(t *testing.T) {
	t.Parallel()
	jvmtest.ForNewestJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		jvm := jvmtest.Start(t, jdk, "truth.Shares")
		signal(t, jvm.PID, syscall.SIGSTOP)
		defer signal(t, jvm.PID, syscall.SIGCONT)
		awaitStates(t, jvm.PID, "T")
		_, sum := record(t, attach(t, jvm.PID), after(t, 300*time.Millisecond), session.RecordOptions{})
		if sum.Samples != 0 {
			t.Errorf("%d samples of a JVM that stands still", sum.Samples)
		}
		if got := threadStates(t, jvm.PID); got != "T" {
			t.Errorf("states after the recording: %s, not all T", got)
		}
	})
}

// TestRecordChangesNothing compares what the kernel says of a process before and after.
func TestRecordChangesNothing(t *testing.T) {
	t.Parallel()
	// Flags against threads that the JVM starts and ends as it likes.
	flags := []string{"-XX:+IgnoreUnrecognizedVMOptions", "-XX:+UseSerialGC", "-XX:-UseDynamicNumberOfCompilerThreads"}
	jvmtest.ForNewestJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		// What goprof leaves behind it leaves in each JVM. What the JVM does by itself, as to load a library late, it does
		// now and then.
		again(t, func(t testing.TB) {
			jvm := jvmtest.Start(fact(t), jdk, "truth.Shares", flags...)
			defer jvm.Quit()
			before := lookOf(t, jvm.PID)
			s := attach(t, jvm.PID)
			dumped(t, s, session.DumpOptions{})
			var opt session.RecordOptions
			record(t, s, untilEnough(t, &opt, longEnough(time.Second), 100), opt)
			now := lookOf(t, jvm.PID)
			for what, was := range before {
				if now[what] != was {
					t.Errorf("%s was\n%s\nand is\n%s", what, was, now[what])
				}
			}
		})
	})
}

// lookOf is all that a guest could leave behind in a process.
func lookOf(t testing.TB, pid int) map[string]string {
	t.Helper()
	proc := func(name string) string { return fmt.Sprintf("/proc/%d/%s", pid, name) }
	look := map[string]string{}
	for _, name := range []string{"cmdline", "environ", "limits", "oom_score_adj", "coredump_filter", "personality",
		"cgroup"} {
		raw, err := os.ReadFile(proc(name))
		if err != nil {
			t.Logf("not compared: %v", err)
			continue
		}
		look[name] = string(raw)
	}
	look["files"] = links(t, proc("fd"))
	look["mapped files"] = mappedFiles(t, proc("maps"))
	tasks, err := os.ReadDir(proc("task"))
	if err != nil {
		t.Fatal(err)
	}
	var threads []string
	for _, task := range tasks {
		threads = append(threads, threadLook(t, proc("task/"+task.Name())))
	}
	look["threads"] = strings.Join(threads, "\n")
	// What attaching in the JVM's own way leaves: .attach_pidN, .java_pidN; its files of counters.
	var left []string
	own := ".*pid" + strconv.Itoa(pid) + "*" // others may attach to their own JVMs meanwhile
	for _, pattern := range []string{"/tmp/" + own, proc("cwd/" + own), proc("root/tmp/" + own),
		"/tmp/hsperfdata_*/" + strconv.Itoa(os.Getpid())} {
		paths, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		left = append(left, paths...)
	}
	look["files left behind"] = strings.Join(left, "\n")
	return look
}

// threadLook is what stays the same of a thread's status while it runs, and its nice value
// and scheduling policy (fields 19 and 41 of stat, proc(5)).
func threadLook(t testing.TB, dir string) string {
	t.Helper()
	status, err := os.ReadFile(filepath.Join(dir, "status"))
	if err != nil {
		t.Fatal(err)
	}
	stat, err := os.ReadFile(filepath.Join(dir, "stat"))
	if err != nil {
		t.Fatal(err)
	}
	var look []string
	for line := range strings.Lines(string(status)) {
		switch name, _, _ := strings.Cut(line, ":"); name {
		case "Name", "Pid", "TracerPid", "Uid", "Gid", "FDSize", "Threads", "SigPnd", "ShdPnd", "SigBlk", "SigIgn", "SigCgt",
			"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp", "Seccomp_filters", "Cpus_allowed",
			"Mems_allowed":
			look = append(look, strings.Join(strings.Fields(line), " "))
		}
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	fields := strings.Fields(rest) // the first is field 3
	return strings.Join(append(look, "nice "+fields[19-3], "policy "+fields[41-3]), ", ")
}

func links(t testing.TB, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, e := range entries {
		to, err := os.Readlink(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, e.Name()+" -> "+to)
	}
	return strings.Join(all, "\n")
}

// mappedFiles are the files and special areas that are mapped, with their access rights; anonymous
// memory comes and goes with the heap.
func mappedFiles(t testing.TB, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for line := range strings.Lines(string(raw)) {
		if f := strings.Fields(line); len(f) > 5 && !strings.HasPrefix(f[5], "[anon") {
			seen[f[1]+" "+strings.Join(f[5:], " ")] = true
		}
	}
	return strings.Join(slices.Sorted(maps.Keys(seen)), "\n")
}
