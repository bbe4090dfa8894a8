//go:build linux

package oracle

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf16"

	"goprof/output/dumps"
	"goprof/profile"
	"goprof/session"
	"goprof/testdata/host"
	"goprof/testdata/jvmtest"
)

// dumpedThread and dumpedFrame are what "goprof dump --json" says: these tests read it as a
// user's program would.
type dumpedThread struct {
	TID       int
	Name      string
	State     string
	Frames    []dumpedFrame
	Truncated string
	Error     string

	Java, System, Daemon bool
	Holds, WaitsFor      any   `json:",omitempty"`
	CPU                  int64 `json:"cpu_ns"`
	JavaID               int64 `json:"java_id"`
	Priority             int
	Age                  int64 `json:"age_ns"`

	Virtual          *dumpedVirtual
	Carrier          []dumpedFrame
	CarrierTruncated string `json:"carrier_truncated"`
}

type dumpedVirtual struct {
	ID   uint64
	Name string
}

type dumpedFrame struct {
	Name       string
	Kind       string
	File       string
	Line       int
	BCI        *int
	Level      int
	Module     string
	PC, SP, FP string

	Certainty string
}

func (f *dumpedFrame) isJava() bool {
	switch f.Kind {
	case "interpreted", "c1", "c2", "inlined", "native-method":
		return true
	}
	return false
}

// dumped looks at all threads and takes the way over JSON.
func dumped(t testing.TB, s *session.Session, opt session.DumpOptions) []dumpedThread {
	t.Helper()
	if opt.Wait == 0 {
		opt.Wait = time.Minute // a thread that has no CPU for longer than others wait is no fault here
	}
	threads, err := s.Dump(opt)
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if err := dumps.JSON(&text, &profile.Dump{Threads: threads}, dumps.Shape{Native: true}); err != nil {
		t.Fatal(err)
	}
	var all struct{ Threads []dumpedThread }
	in := json.NewDecoder(&text)
	in.DisallowUnknownFields()
	if err := in.Decode(&all); err != nil {
		t.Fatal(err)
	}
	once := map[int]bool{}
	for _, th := range all.Threads {
		if once[th.TID] {
			t.Errorf("thread %d is there twice", th.TID)
		}
		once[th.TID] = true
	}
	return all.Threads
}

// dumpedParked is dumped for threads that stand still. On a machine with no CPU to spare one may
// not come to its stop in time, which a dump says and does not wait for; then it looks again.
func dumpedParked(t *testing.T, s *session.Session, stacks []jvmtest.ExpectedStack,
	opt session.DumpOptions) []dumpedThread {
	t.Helper()
	for tries := 0; ; tries++ {
		threads, late := dumped(t, s, opt), 0
		for _, want := range stacks {
			if want.Parked && isLate(threadNamed(t, threads, want.Thread)) {
				late++
			}
		}
		if late == 0 || tries == 30 {
			return threads
		}
		t.Logf("%d threads did not stop in time", late)
	}
}

// isLate reports whether a thread has no stack, because it had no CPU to stop on, or might have been held for too long.
func isLate(th dumpedThread) bool {
	return slices.Contains([]string{profile.StopTimeout.String(), profile.StopMissed.String(),
		profile.Unadmitted.String()}, th.Error)
}

// threadNamed finds a thread by its name, which these programs give to one only.
func threadNamed(t *testing.T, threads []dumpedThread, name string) dumpedThread {
	t.Helper()
	i := slices.IndexFunc(threads, func(th dumpedThread) bool { return th.Name == name })
	if i < 0 {
		t.Fatalf("no thread %q in the dump", name)
	}
	return threads[i]
}

// javaOf is what a program's own word on its stack is compared with.
func javaOf(th *dumpedThread) (frames []jvmtest.ShadowFrame) {
	for i := range th.Frames {
		if f := &th.Frames[i]; f.isJava() {
			frames = append(frames, jvmtest.ShadowFrame{Method: f.Name, Line: f.Line})
		}
	}
	return frames
}

// dumpedText prints a stack for a failed test.
func dumpedText(th *dumpedThread) string {
	var b strings.Builder
	for i, f := range th.Frames {
		if i > 15 && i < len(th.Frames)-15 {
			continue
		}
		b.WriteString("  " + f.Kind + " " + f.Name + ":" + strconv.Itoa(f.Line) + " pc " + f.PC + " sp " + f.SP + "\n")
	}
	return b.String()
}

// TestNamesAndStates: a thread's name is what Java says, in any characters, and so is its state.
func TestNamesAndStates(t *testing.T) {
	t.Parallel()
	jvmtest.ForEachJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		jvm := jvmtest.Start(t, jdk, "truth.Named")
		s := attach(t, jvm.PID)
		states := javaStates(t, dumped(t, s, session.DumpOptions{}))
		for _, line := range jvm.Command("threads") {
			name, state := namedThread(t, line)
			if states[name] != state {
				t.Errorf("%q is %q, not %q", name, states[name], state)
			}
		}
		renamed, state := namedThread(t, jvm.Command("rename")[0])
		if got := javaStates(t, dumped(t, s, session.DumpOptions{}))[renamed]; got != state {
			t.Errorf("%q, as it is called now, is %q, not %q", renamed, got, state)
		}
		// The JVM's own threads; kernel names (GC, VM) have up to 15 characters.
		gc := "GC Thread#0"
		if jdk.Version == 8 {
			gc = "GC task thread#"
		}
		names := []string{"main", "VM Thread", "Reference Handler", "Signal Dispatcher", gc, "C2 CompilerThread0"}
		var threads []dumpedThread
		host.WaitFor(t, "all have stopped in time", func() bool {
			threads = dumped(t, s, session.DumpOptions{})
			return !slices.ContainsFunc(names, func(name string) bool { return isLate(threadNamed(t, threads, name)) })
		})
		for _, name := range names {
			th := threadNamed(t, threads, name)
			own := th.Name == "VM Thread" || th.Name == gc || strings.Contains(th.Name, "Compiler")
			system := th.Name == "Reference Handler" || th.Name == "Signal Dispatcher"
			if th.Java == own || th.System != (system || own && th.Daemon) || th.Daemon && th.Name == "main" || th.CPU <= 0 {
				t.Errorf("%s: java %t, system %t, daemon %t, CPU %d", th.Name, th.Java, th.System, th.Daemon, th.CPU)
			}
			if th.Truncated != "" || th.Error != "" || len(th.Frames) == 0 || th.State == "" {
				t.Errorf("%s: state %q, truncated %q, error %q\n%s", name, th.State, th.Truncated, th.Error, dumpedText(&th))
			}
		}
	})
}

// javaStates maps names to states.
func javaStates(t *testing.T, threads []dumpedThread) map[string]string {
	t.Helper()
	states := map[string]string{}
	for _, th := range threads {
		states[th.Name] = th.State
	}
	return states
}

// namedThread reads "THREAD name-in-hex state". Half a surrogate pair is no character: it
// is shown as U+FFFD, which is how Unicode replaces what it cannot tell.
func namedThread(t *testing.T, line string) (name, state string) {
	t.Helper()
	words := strings.Fields(line)
	if len(words) != 3 || words[0] != "THREAD" {
		t.Fatalf("no thread: %q", line)
	}
	raw, err := hex.DecodeString(words[1])
	if err != nil || len(raw)%2 != 0 {
		t.Fatalf("no UTF-16: %q", line)
	}
	units := make([]uint16, len(raw)/2)
	for i := range units {
		units[i] = uint16(raw[2*i])<<8 | uint16(raw[2*i+1])
	}
	return string(utf16.Decode(units)), words[2]
}

// startParked starts the threads of truth.Kinds that stand still, and nothing that runs.
func startParked(t *testing.T, jdk jvmtest.JDK) (*jvmtest.JVM, []jvmtest.ExpectedStack) {
	t.Helper()
	jvm := jvmtest.Start(t, jdk, "truth.Kinds", append(jvmtest.KindsFlags, "--", "parked")...)
	stacks, err := jvmtest.ParseStacks(jvm.Command("stacks"))
	if err != nil {
		t.Fatal(err)
	}
	return jvm, stacks
}

// TestDumpOfStoppedJVM: a JVM that is stopped is shown as well, and stays stopped.
func TestDumpOfStoppedJVM(t *testing.T) {
	t.Parallel()
	jvmtest.ForNewestJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		jvm, stacks := startParked(t, jdk)
		s := attach(t, jvm.PID)
		awaitParked(t, s, jvm.PID, stacks)
		before := dumpedParked(t, s, stacks, session.DumpOptions{})
		signal(t, jvm.PID, syscall.SIGSTOP)
		awaitStates(t, jvm.PID, "T")
		defer signal(t, jvm.PID, syscall.SIGCONT)
		// A goprof that comes to a stopped JVM.
		threads := dumpedParked(t, attach(t, jvm.PID), stacks, session.DumpOptions{})
		if got := threadStates(t, jvm.PID); got != "T" {
			t.Errorf("states after the dump: %s, not all T", got)
		}
		checkParked(t, threads, stacks, false)
		for _, want := range stacks {
			was, is := threadNamed(t, before, want.Thread), threadNamed(t, threads, want.Thread)
			if !sameStack(&was, &is) {
				t.Errorf("%s: stopped\n%s\nrunning\n%s", want.Thread, dumpedText(&is), dumpedText(&was))
			}
		}
	})
}

// sameStack reports whether two dumps show the same of a thread. One that a stop would have called out of a system call
// was looked at without a stop. Then a gap stands for native frames, and the native method's pc is not known exactly.
func sameStack(was, is *dumpedThread) bool {
	gap := func(f dumpedFrame) bool { return f.Kind == "gap" }
	if !slices.ContainsFunc(was.Frames, gap) || slices.ContainsFunc(is.Frames, gap) {
		return dumpedText(was) == dumpedText(is)
	}
	java := func(th *dumpedThread) (all []string) {
		for _, f := range th.Frames {
			if f.Kind != "native" && f.Kind != "gap" {
				all = append(all, f.Kind+" "+f.Name+":"+strconv.Itoa(f.Line)+" sp "+f.SP)
			}
		}
		return all
	}
	return slices.Equal(java(was), java(is))
}

// TestNonBlocking: without a stop all Java frames of a thread that stands still are there.
func TestNonBlocking(t *testing.T) {
	t.Parallel()
	jvmtest.ForEachJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		jvm, stacks := startParked(t, jdk)
		s := attach(t, jvm.PID)
		turns := awaitParked(t, s, jvm.PID, stacks)
		threads := dumped(t, s, session.DumpOptions{NonBlocking: true})
		// A thread that is stopped in a system call wakes up for that, which the kernel counts.
		if now, _ := parkedSwitches(t, threads, jvm.PID, stacks); now != turns {
			t.Errorf("the kernel has switched to parked threads %d times", now-turns)
		}
		for _, want := range stacks {
			th := threadNamed(t, threads, want.Thread)
			if err := want.Compare(javaOf(&th)); err != nil || th.Truncated != "" || th.Error != "" {
				t.Errorf("%s: truncated %q, error %q, %v\n%s", th.Name, th.Truncated, th.Error, err, dumpedText(&th))
			}
		}
		threads = dumped(t, s, session.DumpOptions{})
		if now, _ := parkedSwitches(t, threads, jvm.PID, stacks); now == turns {
			t.Error("stops do not count as switches here, so this test proves nothing")
		}
	})
}

// awaitParked waits until the threads that stand still do. It returns how often the kernel has switched from them.
func awaitParked(t *testing.T, s *session.Session, pid int, stacks []jvmtest.ExpectedStack) (turns int) {
	t.Helper()
	threads := dumped(t, s, session.DumpOptions{NonBlocking: true})
	turns = -1
	host.WaitFor(t, "all have come to a stand", func() bool {
		before, asleep := turns, false
		turns, asleep = parkedSwitches(t, threads, pid, stacks)
		if turns == before && asleep {
			return true
		}
		time.Sleep(100 * time.Millisecond)
		return false
	})
	return turns
}

// parkedSwitches is how often the kernel has switched from the threads that stand still, and whether they all sleep:
// one that has no CPU stands, too. Those that wait for a monitor look around now and then by themselves
// (runtime/objectMonitor.cpp, MAX_RECHECK_INTERVAL).
func parkedSwitches(t *testing.T, threads []dumpedThread, pid int, stacks []jvmtest.ExpectedStack) (sum int,
	asleep bool) {
	t.Helper()
	asleep = true
	for _, want := range stacks {
		th := threadNamed(t, threads, want.Thread)
		if !want.Parked || strings.HasPrefix(th.State, "BLOCKED") {
			continue
		}
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/status", pid, th.TID))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(status)) {
			name, value, _ := strings.Cut(line, ":")
			asleep = asleep && (name != "State" || strings.HasPrefix(value, "\tS"))
			if strings.HasSuffix(name, "voluntary_ctxt_switches") {
				n, err := strconv.Atoi(strings.TrimSpace(value))
				if err != nil {
					t.Fatal(err)
				}
				sum += n
			}
		}
	}
	return sum, asleep
}

func signal(t testing.TB, pid int, sig syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(pid, sig); err != nil {
		t.Fatal(err)
	}
}

// threadStates are the different states in which the kernel has the threads of a process:
// "T" if all are stopped.
func threadStates(t testing.TB, pid int) string {
	t.Helper()
	stats, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	if err != nil || len(stats) == 0 {
		t.Fatalf("no threads: %v", err)
	}
	var states []string
	for _, path := range stats {
		stat, err := os.ReadFile(path)
		if err != nil {
			continue // the thread has ended
		}
		_, rest, _ := strings.Cut(string(stat), ") ")
		states = append(states, rest[:1])
	}
	slices.Sort(states)
	return strings.Join(slices.Compact(states), "")
}

// awaitStates waits until all threads are in one state: signals take a moment.
func awaitStates(t testing.TB, pid int, state string) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); threadStates(t, pid) != state; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("threads are in states %s, not %s", threadStates(t, pid), state)
		}
	}
}
