//go:build linux

package oracle

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"goprof/profile"
	"goprof/sampler/ptrace"
	"goprof/session"
	"goprof/testdata/ctest"
	"goprof/testdata/jvmtest"
)

// needUserfaultfd skips where a program could not have memory that does not answer.
func needUserfaultfd(t testing.TB) {
	t.Helper()
	fd, _, e := unix.Syscall(unix.SYS_USERFAULTFD, unix.O_CLOEXEC, 0, 0)
	if e != 0 {
		t.Skipf("userfaultfd is not to be had: %v (it needs root, or vm.unprivileged_userfaultfd=1)", e)
	}
	unix.Close(int(fd))
}

// neverEnds is when goprof is said not to end. Nothing here needs more than some seconds; before there were Runners,
// it hung for ever.
const neverEnds = 100 * time.Second

// endsIn runs goprof, which must end by itself.
func endsIn(t *testing.T, goprof string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), neverEnds)
	defer cancel()
	cmd := exec.CommandContext(ctx, goprof, args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	began := time.Now()
	cmd.Run()
	if ctx.Err() != nil {
		t.Errorf("goprof %s does not end\n%s", strings.Join(args, " "), errs.String())
	}
	t.Logf("goprof %s: %v, exit code %d", args[0], time.Since(began).Round(time.Millisecond), cmd.ProcessState.ExitCode())
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// startAgent starts a JVM with the agent, and a Java thread that spins. -Xbatch: its loop is compiled when it begins.
// Before that it has polls, and the collector would run in its place.
func startAgent(t *testing.T, jdk jvmtest.JDK, agent *nativeLibrary, what string) *jvmtest.JVM {
	t.Helper()
	return jvmtest.Start(t, jdk, "truth.Trouble", "-agentpath:"+agent.path+"="+what,
		"-XX:+UseParallelGC", "-XX:-UseCountedLoopSafepoints", "-Xbatch", "--", "safepoint")
}

// TestSilentStacks: a JVM with native threads whose stacks have a hole that does not answer.
func TestSilentStacks(t *testing.T) {
	needUserfaultfd(t)
	goprof := buildGoprof(t)
	agent := buildNative(t, "silent.c", "libsilent.so", withCFI...)
	jvmtest.ForNewestJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		jvm := startAgent(t, jdk, agent, "stack")
		defer jvm.Kill()
		pid := strconv.Itoa(jvm.PID)
		for _, mode := range []string{"cpu", "wall"} {
			stacks := filepath.Join(t.TempDir(), "o.collapsed")
			var sum profile.Summary
			var errs string
			for tries := 0; tries == 0 || tries < 10 && sum.Skipped > 200; tries++ { // half of the ticks: goprof had no CPU
				sum, errs = recordSilent(t, goprof, pid, mode, stacks)
			}
			if sum.Silent != 2 || sum.LostBy[profile.Silent.String()] < 2 || sum.Attempted != sum.Whole+sum.Truncated+sum.Lost {
				t.Errorf("%s: %d silent threads, lost: %v", mode, sum.Silent, sum.LostBy)
			}
			// A machine may take the CPU from goprof for seconds while it holds a thread; what does not answer never does.
			if sum.Pauses.Max > 10*time.Second || sum.Pauses.Bound == 0 {
				t.Errorf("%s: a thread stood for %v", mode, sum.Pauses.Max)
			}
			named := strings.Count(errs, "memory-hangs: thread [silent tid=")
			if named != 2 || !strings.Contains(errs, "silent     2 threads") {
				t.Errorf("%s: they are not named:\n%s", mode, errs)
			}
			b, _ := os.ReadFile(stacks)
			if !bytes.Contains(b, []byte("truth.Trouble.counted")) || bytes.Contains(b, []byte("[silent tid=")) {
				t.Errorf("%s: %d bytes of stacks, without the Java thread or with silent ones", mode, len(b))
			}
		}
		out, errs, code := endsIn(t, goprof, "dump", "--pid", pid)
		for tries := 0; code == notComplete && tries < 10; tries++ { // a thread had no CPU to stop on
			out, errs, code = endsIn(t, goprof, "dump", "--pid", pid)
		}
		if code != 0 || strings.Count(out, profile.Silent.String()) != 2 || !strings.Contains(out, "truth.Trouble.") {
			t.Errorf("dump: exit code %d\n%s%s", code, errs, out)
		}
		if out, _, code := endsIn(t, goprof, "list"); code != 0 || !strings.Contains(out, "truth.Trouble") {
			t.Errorf("list: exit code %d\n%s", code, out)
		}
		if s := threadStates(t, jvm.PID); strings.Contains(s, "t") {
			t.Errorf("threads stand: %s", s)
		}
	})
}

// recordSilent records for 400 ticks.
func recordSilent(t *testing.T, goprof, pid, mode, stacks string) (sum profile.Summary, errs string) {
	t.Helper()
	account := filepath.Join(t.TempDir(), "s.json")
	_, errs, code := endsIn(t, goprof, "record", "--pid", pid, "--mode", mode, "--engine", "ptrace", "-d", "2",
		"-r", "200", "-t", "-v", "-o", stacks, "--summary", account)
	if code != 0 {
		t.Errorf("%s: exit code %d\n%s", mode, code, errs)
	}
	b, err := os.ReadFile(account)
	if err != nil || json.Unmarshal(b, &sum) != nil {
		t.Fatalf("%v\n%s", err, b)
	}
	t.Logf("%d ticks of 400 were not held", sum.Skipped)
	return sum, errs
}

// TestSilentTop: a thread of Java's sleeps, and its stack has a hole that does not answer. top looks at the others.
func TestSilentTop(t *testing.T) {
	t.Parallel()
	needUserfaultfd(t)
	goprof := buildGoprof(t)
	agent := buildNative(t, "silent.c", "libsilent.so", withCFI...)
	jvmtest.ForNewestJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		now := filepath.Join(t.TempDir(), "now")
		jvm := jvmtest.Start(t, jdk, "truth.Rates", "-agentpath:"+agent.path+"=java="+now, "--", "5")
		defer jvm.Kill()
		os.WriteFile(now, nil, 0o600)
		ctest.Eventually(t, "there is a silent thread", func() bool {
			names, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/comm", jvm.PID))
			return slices.ContainsFunc(names, func(name string) bool {
				b, _ := os.ReadFile(name)
				return string(b) == "silent\n"
			})
		})
		frames := topFrames(t, goprof, jvm.PID)
		for tries := 0; tries < 10 && !strings.Contains(frames["Reference Handler"], "java.lang.ref."); tries++ {
			frames = topFrames(t, goprof, jvm.PID) // it runs after each collection
		}
		if got := frames["silent"]; got != "sleeping: " {
			t.Errorf("the silent thread is %q", got)
		}
		if got := frames["Reference Handler"]; !strings.Contains(got, "java.lang.ref.Reference") {
			t.Errorf("another one is %q", got)
		}
		readsOnce(t, jvm.PID)
	})
}

// topFrames is what top says of each thread, by its name.
func topFrames(t *testing.T, goprof string, pid int) map[string]string {
	t.Helper()
	out, errs, code := endsIn(t, goprof, "top", strconv.Itoa(pid), "--once", "--json")
	var reading struct {
		Threads []struct{ Name, State, Frame string }
	}
	if code != 0 || json.Unmarshal([]byte(out), &reading) != nil {
		t.Fatalf("exit code %d\n%s%s", code, out, errs)
	}
	frames := map[string]string{}
	for _, th := range reading.Threads {
		frames[th.Name] = th.State + ": " + th.Frame
	}
	return frames
}

// readsOnce: while the read does not come back, no other OS thread is sent after it.
func readsOnce(t *testing.T, pid int) {
	t.Helper()
	s, err := session.Attach(pid)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	live := s.NewLive()
	defer live.Close()
	ownThreads := func() int {
		if _, err := live.Read(true); err != nil {
			t.Fatal(err)
		}
		list, _ := os.ReadDir("/proc/self/task")
		return len(list)
	}
	before := ownThreads()
	for range ptrace.MostSilent {
		ownThreads()
	}
	more := ownThreads() - before
	for range 5 { // Go starts some of its own, and ends them
		more = min(more, ownThreads()-before)
	}
	if more > ptrace.MostSilent/2 {
		t.Errorf("%d more OS threads", more)
	}
}

// TestLiveAfterDump: a dump of a thread by the same session takes nothing from what is read of threads afterwards, as
// where the user of top asks for a stack.
func TestLiveAfterDump(t *testing.T) {
	t.Parallel()
	jvmtest.ForNewestJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		jvm := jvmtest.Start(t, jdk, "truth.LocksGraph", "-Xmx64m", "--", "7", "12", "m", "0")
		s, err := session.Attach(jvm.PID)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		live := s.NewLive()
		defer live.Close()
		blocked := func() (tids []int) {
			threads, err := live.Read(true)
			if err != nil {
				t.Fatal(err)
			}
			for _, th := range threads {
				if th.State == profile.Blocked.String() {
					tids = append(tids, th.TID)
				}
			}
			return tids
		}
		var before []int
		ctest.Eventually(t, "some wait for monitors", func() bool { before = blocked(); return len(before) > 1 })
		if _, err := s.DumpThread(before[0], session.DumpOptions{}); err != nil {
			t.Fatal(err)
		}
		// The one that was stopped for the dump goes back to sleep when it has a CPU.
		ctest.Eventually(t, "those that were blocked before the dump are", func() bool {
			after := blocked()
			return !slices.ContainsFunc(before, func(tid int) bool { return !slices.Contains(after, tid) })
		})
	})
}

// TestSilentVariables: in the middle of a recording, all that the JVM itself knows is gone.
func TestSilentVariables(t *testing.T) {
	t.Parallel()
	needUserfaultfd(t)
	goprof := buildGoprof(t)
	agent := buildNative(t, "silent.c", "libsilent.so", withCFI...)
	jvmtest.ForNewestJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		dir := t.TempDir()
		now := filepath.Join(dir, "now")
		jvm := startAgent(t, jdk, agent, "data="+now)
		defer jvm.Kill()
		pid, stacks := strconv.Itoa(jvm.PID), filepath.Join(dir, "o.collapsed")
		go func() {
			// goprof makes its file at the end. However long it takes to begin, it has samples then.
			for range 20 {
				awaitHolding(t, jvm.PID)
				time.Sleep(10 * time.Millisecond)
			}
			os.WriteFile(now, nil, 0o600)
		}()
		_, errs, code := endsIn(t, goprof, "record", "--pid", pid, "--engine", "ptrace", "-d", "60", "-r", "500",
			"-o", stacks)
		b, _ := os.ReadFile(stacks)
		if code == 0 || !strings.Contains(errs, "does not answer") || !bytes.Contains(b, []byte("truth.Trouble.counted")) {
			t.Errorf("record: exit code %d, %d bytes of stacks\n%s", code, len(b), errs)
		}
		var commands sync.WaitGroup
		for _, args := range [][]string{
			{"dump", "--pid", pid},
			{"dump", "--virtual", "--pid", pid},
			{"doctor", "--pid", pid},
			{"record", "--pid", pid, "-d", "1", "-o", stacks},
			{"record", "--pid", pid, "-d", "1", "-o", stacks, "--mode", "wall"},
			{"list"},
		} {
			commands.Go(func() {
				out, errs, code := endsIn(t, goprof, args...)
				listed := code == 0 && strings.Contains(out, pid) && strings.Contains(out, "could not be read")
				if args[0] == "list" && listed || code == 1 && strings.Contains(out+errs, "does not answer") {
					return
				}
				t.Errorf("%q: exit code %d\n%s%s", args, code, out, errs)
			})
		}
		commands.Wait()
		if s := threadStates(t, jvm.PID); strings.Contains(s, "t") {
			t.Errorf("threads stand: %s", s)
		}
	})
}
