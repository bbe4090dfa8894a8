//go:build linux

package oracle

import (
	"context"
	"fmt"
	"math"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"goprof/profile"
	"goprof/session"
	"goprof/testdata/jvmtest"
	"goprof/testdata/sampletest"
)

// busyEnv makes of this test program one that has so many busy threads, for so many seconds: "60 15".
const busyEnv = "GOPROF_BUSY_THREADS"

func init() {
	var threads, seconds int
	if n, _ := fmt.Sscan(os.Getenv(busyEnv), &threads, &seconds); n != 2 {
		return
	}
	runtime.GOMAXPROCS(threads + 1)
	for range threads {
		go func() {
			runtime.LockOSThread()
			for n := 0; n >= 0; n = (n + 1) & 0xffff {
			}
		}()
	}
	parent := os.Getppid()
	for end := time.Now().Add(time.Duration(seconds) * time.Second); time.Now().Before(end) && os.Getppid() == parent; {
		time.Sleep(100 * time.Millisecond)
	}
	os.Exit(0)
}

// overload has so many threads of another process want a CPU until the test is over, or the time.
func overload(t testing.TB, threads int, longest time.Duration) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d %d", busyEnv, threads, int(longest.Seconds())))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	time.Sleep(time.Second) // all of them have begun by then
}

// TestOverloaded records javac while sixty threads of another program want the CPUs: nothing is lost for want of one,
// though there is new code all the time. GOPROF_OVERLOAD_SECONDS makes it longer, and then so few may be lost that
// less time would not show it.
func TestOverloaded(t *testing.T) {
	seconds := envNumber("GOPROF_OVERLOAD_SECONDS", 3)
	jvmtest.ForNewestJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		again(t, func(t testing.TB) {
			jvm := jvmtest.Start(fact(t), jdk, "truth.JavacLoop", "--", "0", javacClasses)
			defer jvm.Kill() // it would end after two rounds only
			sum := recordOverloaded(t, jvm, seconds, func() {}, func(*profile.Profile) {})
			most, full := 0.05, sum.LostBy[profile.QueueFull.String()]
			if seconds >= 15 {
				most, full = 0.005, 0
			}
			// A hypervisor may take the CPU from the walker alone for a second: that fills the queue.
			full = min(full, sum.Attempted/4)
			if float64(sum.Lost-full) > math.Max(2, most*float64(sum.Attempted)) {
				t.Errorf("%d of %d are lost: %v", sum.Lost, sum.Attempted, sum.LostBy)
			}
		})
	})
}

// TestOverloadedDepths: of deep stacks no more are lost than of others.
func TestOverloadedDepths(t *testing.T) {
	sampletest.Proof(t)
	seconds := envNumber("GOPROF_OVERLOAD_SECONDS", 3)
	jvmtest.ForNewestJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		jvm := jvmtest.Start(t, jdk, "truth.TwoDepths", "--", "300")
		again(t, func(t testing.TB) { depthsRun(t, jvm, seconds) })
	})
}

func depthsRun(t testing.TB, jvm *jvmtest.JVM, seconds int) {
	var seen, before, after [2]float64
	sum := recordOverloaded(t, jvm, seconds, func() { before = cpuOf(t, jvm) }, func(p *profile.Profile) {
		after = cpuOf(t, jvm)
		p.Each(func(frames []profile.Frame, n int64) {
			for i, label := range []string{"[shallow ", "[deep "} {
				if strings.HasPrefix(frames[0].Func.Name, label) {
					seen[i] += float64(n)
				}
			}
		})
	})
	used := [2]float64{after[0] - before[0], after[1] - before[1]}
	all, truth := seen[0]+seen[1], used[1]/(used[0]+used[1])
	if all == 0 {
		t.Fatal("no samples")
	}
	off, sigma := seen[1]/all-truth, math.Sqrt(truth*(1-truth)/all)
	// CPU time that has no samples, because a hypervisor had the CPU for which a thread was charged, was of either.
	due := (used[0] + used[1]) / float64(time.Millisecond)
	unseen := max(0, (due-all-float64(sum.Lost))/due-0.2) // a recording takes some time to begin
	t.Logf("the deep thread: %.3f of the CPU time, %.3f of %.0f samples where %.0f are due, %.1f standard errors off",
		truth, seen[1]/all, all, due, off/sigma)
	if math.Abs(off) > 4.5*sigma+unseen {
		t.Error("deep stacks are not lost as often as others")
	}
}

// recordOverloaded records a program at 1,000 Hz beside sixty busy threads. begin and ended are called right before
// and after.
func recordOverloaded(t testing.TB, jvm *jvmtest.JVM, seconds int, begin func(),
	ended func(*profile.Profile)) profile.Summary {
	t.Helper()
	s := attach(t, jvm.PID)
	time.Sleep(time.Second) // most is compiled by then
	runAlong(jvm.PID)
	overload(t, envNumber("GOPROF_OVERLOAD", 60), time.Duration(seconds+20)*time.Second)
	begin()
	p, sum, err := s.Record(context.Background(), session.RecordOptions{
		Duration: time.Duration(seconds) * time.Second, Interval: time.Millisecond, Threads: true, Engine: testEngine})
	ended(p)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d looks, %d lost %v, %d cut short %v; goprof used %v of %v; longest gap %v",
		sum.Attempted, sum.Lost, sum.LostBy, sum.Truncated, sum.TruncatedBy, sum.OwnCPU, sum.Meta.Duration, sum.Gap)
	return sum
}

// runAlong gives a program more turns than the others have, where that is permitted: there would be few samples of it.
func runAlong(pid int) {
	tasks, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	for _, task := range tasks {
		if tid, err := strconv.Atoi(task.Name()); err == nil {
			unix.Setpriority(unix.PRIO_PROCESS, tid, -8)
		}
	}
}

// cpuOf is the CPU time that the shallow thread and the deep one have used.
func cpuOf(t testing.TB, jvm *jvmtest.JVM) (cpu [2]float64) {
	t.Helper()
	for i, f := range strings.Fields(jvm.Command("cpu")[0]) {
		ns, err := strconv.ParseFloat(f, 64)
		if err != nil {
			t.Fatal(err)
		}
		cpu[i] = ns
	}
	return cpu
}

// TestOverloadedRest looks at a program that is stopped, while sixty threads of another one want the CPUs: nothing has
// moved, so however long a look waits for its walk it counts.
func TestOverloadedRest(t *testing.T) {
	seconds := envNumber("GOPROF_OVERLOAD_SECONDS", 3)
	jvmtest.ForNewestJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		jvm := jvmtest.Start(t, jdk, "truth.TwoDepths", "--", "300")
		s := attach(t, jvm.PID)
		time.Sleep(time.Second)
		overload(t, envNumber("GOPROF_OVERLOAD", 60), time.Duration(seconds+60)*time.Second)
		if err := syscall.Kill(jvm.PID, syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		defer syscall.Kill(jvm.PID, syscall.SIGCONT)
		again(t, func(t testing.TB) {
			_, sum, err := s.Record(context.Background(), session.RecordOptions{Mode: session.WallMode,
				Duration: time.Duration(seconds) * time.Second, Interval: 50 * time.Millisecond})
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%d looks, %d lost %v; goprof used %v", sum.Attempted, sum.Lost, sum.LostBy, sum.OwnCPU)
			if sum.Attempted == 0 || sum.Lost*200 > sum.Attempted {
				t.Errorf("%d of %d looks at threads that do not move are lost: %v", sum.Lost, sum.Attempted, sum.LostBy)
			}
		})
	})
}

// TestOverloadedDump looks at some hundred threads, some of which run, while a hundred threads of another program want
// the CPUs: each has its stack.
func TestOverloadedDump(t *testing.T) {
	jvmtest.ForNewestJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		jvm := jvmtest.Start(t, jdk, "truth.Crowd", "--", "200", "20")
		s := attach(t, jvm.PID)
		overload(t, envNumber("GOPROF_OVERLOAD", 100), 90*time.Second)
		again(t, func(t testing.TB) { overloadedDump(t, s) })
	})
}

func overloadedDump(t testing.TB, s *session.Session) {
	began := time.Now()
	threads, err := s.Dump(session.DumpOptions{Wait: 30 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	empty := 0
	for i := range threads {
		if len(threads[i].Stack.Frames) == 0 {
			empty++
			t.Logf("%s: %s", threads[i].Name, threads[i].Err)
		}
	}
	t.Logf("%d threads in %v, %d without a stack", len(threads), time.Since(began).Round(time.Millisecond), empty)
	late, leftOut, _ := session.NotStopped(threads)
	if late+leftOut > 0 || len(threads) < 220 {
		t.Errorf("%d of %d threads did not stop", late+leftOut, len(threads))
	}
}
