//go:build linux

package oracle

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"goprof/testdata/jvmtest"
)

// troubled is a JVM in trouble, and what must be seen of it.
type troubled struct {
	name    string
	program []string // truth.Trouble's
	options []string
	// stacks are methods that must be on the stacks of threads, the caller after what it calls.
	stacks map[string][]string
	// busy is the method that a recording meets, empty where all stands still.
	busy string
	// moving: threads run, so one of many may end with a reason.
	moving bool
	// kill: it answers no more, so nobody waits for it.
	kill bool
}

var troubles = []troubled{
	{name: "deadlock", program: []string{"deadlock"},
		stacks: map[string][]string{"first": {"truth.Trouble.lock"}, "second": {"truth.Trouble.lock"}}},
	{name: "stopped", program: []string{"deadlock"},
		stacks: map[string][]string{"first": {"truth.Trouble.lock"}, "main": {"truth.Trouble.main"}}},
	{name: "safepoint that does not begin", program: []string{"safepoint"},
		options: []string{"-XX:+UseParallelGC", "-XX:-UseCountedLoopSafepoints"},
		stacks: map[string][]string{"counting": {"truth.Trouble.counted"}, "asking": {"java.lang.System.gc"},
			"VM Thread": nil}, busy: "truth.Trouble.counted", moving: true, kill: true},
	{name: "out of memory", program: []string{"memory"},
		options: []string{"-Xmx24m", "-XX:+UseSerialGC", "-XX:-UseGCOverheadLimit"},
		stacks:  map[string][]string{"starving-0": {"truth.Trouble.starve"}, "starving-1": {"truth.Trouble.starve"}},
		busy:    "[VM Thread]", moving: true, kill: true},
	{name: "full collection, Serial", program: []string{"collecting"}, options: []string{"-Xmx1g", "-XX:+UseSerialGC"},
		stacks: map[string][]string{"collector": {"java.lang.System.gc"}, "main": {"truth.Trouble.main"}},
		busy:   "[VM Thread]", moving: true, kill: true},
	{name: "full collection, Parallel", program: []string{"collecting"}, options: []string{"-Xmx1g", "-XX:+UseParallelGC"},
		stacks: map[string][]string{"collector": {"java.lang.System.gc"}}, busy: "GC", moving: true, kill: true},
	{name: "exiting", program: []string{"exiting"},
		stacks: map[string][]string{"hook": {"truth.Trouble.hang"}, "leaving": {"java.lang.System.exit"}},
		busy:   "truth.Trouble.starve", moving: true, kill: true},
}

// TestTrouble: dump and record work on JVMs that answer nobody.
func TestTrouble(t *testing.T) {
	t.Parallel()
	goprof := buildGoprof(t)
	jvmtest.ForNewestJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		for _, c := range jvmtest.Drawn(t, 4, troubles) {
			t.Run(c.name, func(t *testing.T) {
				jvm := jvmtest.Start(t, jdk, "truth.Trouble", slices.Concat(c.options, []string{"--"}, c.program)...)
				if c.kill {
					defer jvm.Kill()
				}
				if c.name == "stopped" {
					signal(t, jvm.PID, syscall.SIGSTOP)
					awaitStates(t, jvm.PID, "T")
					defer signal(t, jvm.PID, syscall.SIGCONT)
				}
				c.checkDump(t, goprof, jvm.PID)
				c.checkRecord(t, goprof, jvm.PID)
				if c.name == "stopped" && threadStates(t, jvm.PID) != "T" {
					t.Error("it does not stand any more")
				}
			})
		}
	})
}

// checkDump dumps until it has met each thread where it must be: those that run are not there all the time.
func (c *troubled) checkDump(t *testing.T, goprof string, pid int) {
	t.Helper()
	var missing, last string
	for range 30 {
		dump := runIfSampled(t, goprof, "dump", "--pid", strconv.Itoa(pid), "--json")
		var all struct{ Threads []dumpedThread }
		if err := json.Unmarshal([]byte(dump.out), &all); err != nil || dump.code != 0 {
			t.Fatalf("%v, exit code %d\n%s", err, dump.code, dump.err)
		}
		c.checkWhole(t, all.Threads)
		if missing, last = c.missing(all.Threads), dump.out; missing == "" {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Errorf("never seen: %s\n%s", missing, last)
}

// checkWhole: where all stands still, every stack is whole.
func (c *troubled) checkWhole(t *testing.T, threads []dumpedThread) {
	t.Helper()
	for _, th := range threads {
		if th.Truncated != "" && !c.moving {
			t.Errorf("%s: truncated %q\n%s", th.Name, th.Truncated, dumpedText(&th))
		}
	}
}

// missing names a thread that is not there, or not where it must be.
func (c *troubled) missing(threads []dumpedThread) string {
	for name, methods := range c.stacks {
		i := slices.IndexFunc(threads, func(th dumpedThread) bool { return th.Name == name })
		if i < 0 || threads[i].Truncated != "" || len(threads[i].Frames) == 0 {
			return name
		}
		for _, m := range methods {
			if !hasMethod(javaOf(&threads[i]), m) {
				return name + " in " + m
			}
		}
	}
	return ""
}

// checkRecord records until what is busy has a sample: on a starved machine it may not run for seconds.
func (c *troubled) checkRecord(t *testing.T, goprof string, pid int) {
	t.Helper()
	var r ran
	for range 20 {
		r = runIt(t, goprof, "record", "--pid", strconv.Itoa(pid), "-d", "1", "-r", "200", "-t", "-o", "-", "--summary",
			"sum.json")
		if r.code != 7 && r.code != 0 { // 7: no sample
			t.Fatalf("%+v", r)
		}
		if c.busy == "" || r.code == 0 && strings.Contains(r.out, strings.Trim(c.busy, "[]")) {
			return // where nothing is busy a thread of the VM's own may have used a little
		}
	}
	t.Errorf("no %s\n%s\n%s", c.busy, r.err, r.out)
}

// TestManyThreads: a dump of thousands of threads is complete, whole, and small. With -v it says what it took.
func TestManyThreads(t *testing.T) {
	t.Parallel()
	const n = 5000
	goprof := buildGoprof(t)
	jvmtest.ForNewestJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		jvm := jvmtest.Start(t, jdk, "truth.Trouble", "-Xmx512m", "--", "threads", fmt.Sprint(n))
		defer jvm.Kill()
		began := time.Now()
		dump, cpu, kb := runMeasured(t, goprof, "dump", "--pid", strconv.Itoa(jvm.PID), "--json")
		passed := time.Since(began)
		var all struct{ Threads []dumpedThread }
		if err := json.Unmarshal([]byte(dump.out), &all); err != nil || dump.code != 0 && dump.code != notComplete {
			t.Fatalf("%v, exit code %d\n%s", err, dump.code, dump.err)
		}
		whole := 0
		for _, th := range all.Threads {
			if strings.HasPrefix(th.Name, "one-of-many-") && th.Truncated == "" && hasMethod(javaOf(&th), "truth.Trouble.hang") {
				whole++
			}
		}
		if late := n - whole; late > n/100 { // a thread that gets no CPU in time is told of
			t.Errorf("%d of %d are whole", whole, n)
		}
		if kb > maxManyRSS || kb == 0 {
			t.Errorf("%d KB of memory", kb)
		}
		t.Logf("%d of %d whole; %v, %v of CPU, %d KB, %d KB of JSON", whole, n, passed.Round(time.Millisecond),
			cpu.Round(time.Millisecond), kb, len(dump.out)>>10)
	})
}

// maxManyRSS is what a dump of 5,000 threads may use of memory, in KB.
const maxManyRSS = 250_000

// runMeasured runs a command and tells its CPU time and the most memory that it had, in KB. (What wait4 tells of
// memory counts that of the parent, whose memory a child has until it becomes another program.)
func runMeasured(t *testing.T, args ...string) (r ran, cpu time.Duration, kb int) {
	t.Helper()
	var out, errs bytes.Buffer
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = t.TempDir(), &out, &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	for status := "/proc/" + strconv.Itoa(cmd.Process.Pid) + "/status"; ; {
		if b, err := os.ReadFile(status); err == nil {
			if _, peak, ok := strings.Cut(string(b), "\nVmHWM:"); ok && bytes.Contains(b, []byte("goprof")) {
				var now int
				fmt.Sscan(peak, &now)
				kb = max(kb, now)
			}
		}
		select {
		case <-done:
			return ran{out.String(), errs.String(), cmd.ProcessState.ExitCode()},
				cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), kb
		case <-time.After(5 * time.Millisecond):
		}
	}
}
