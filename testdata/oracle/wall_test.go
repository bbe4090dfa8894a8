//go:build linux

package oracle

import (
	"bufio"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"goprof/profile"
	"goprof/session"
	"goprof/testdata/ctest"
	"goprof/testdata/jvmtest"
)

// knownThread is what truth.States says of one of its threads.
type knownThread struct {
	name, state, waitsFor string
	frames                []string // as the JVM tells them, leaf first, without lambdas' own
}

// startStates starts truth.States, and tells what its threads do.
func startStates(t *testing.T, jdk jvmtest.JDK, flags ...string) (*jvmtest.JVM, []knownThread) {
	t.Helper()
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	jvm := jvmtest.Start(t, jdk, "truth.States", append(flags, "--", fifo)...)
	var threads, before []knownThread
	for tries := 0; ; tries++ { // all have been started; that each has come to a stand shows in stacks that stay the same
		if threads = statesOf(t, jvm); slices.EqualFunc(threads, before, sameStand) {
			return jvm, threads
		}
		if tries == 1000 {
			t.Fatalf("they do not come to a stand: %v, %v", before, threads)
		}
		before = threads
		time.Sleep(20 * time.Millisecond)
	}
}

// standsIn are parts of the names of the methods in which threads come to their stand.
var standsIn = map[string]string{"parked": "park", "blocked": "enter", "waiting": "wait", "sleeping": "sleep",
	"socket": "accept read recv poll select wait", "file": "read"}

// sameStand: twice in the method in which it will stand. One that stood twice in another had no CPU in between.
func sameStand(a, b knownThread) bool {
	if a.state == "running" {
		return true
	}
	if len(a.frames) == 0 || !slices.Equal(a.frames, b.frames) {
		return false
	}
	top := strings.ToLower(a.frames[0][strings.LastIndexByte(a.frames[0], '.')+1:])
	return slices.ContainsFunc(strings.Fields(standsIn[a.state]), func(part string) bool {
		return strings.Contains(top, part)
	})
}

func statesOf(t *testing.T, jvm *jvmtest.JVM) (threads []knownThread) {
	t.Helper()
	for _, line := range jvm.Command("stacks") {
		words := strings.Fields(line)
		switch {
		case len(words) == 4 && words[0] == "THREAD":
			threads = append(threads, knownThread{name: words[1], state: words[2], waitsFor: strings.Trim(words[3], "-")})
		case len(words) == 3 && words[0] == "FRAME" && len(threads) > 0:
			if th := &threads[len(threads)-1]; !isHidden(words[1]) {
				th.frames = append(th.frames, words[1])
			}
		default:
			t.Fatalf("no thread and no frame: %q", line)
		}
	}
	return threads
}

// isHidden: stack traces leave hidden classes out since JDK 15 or so, and before they do not; and methods that are
// @Hidden in all of them.
func isHidden(method string) bool {
	return strings.Contains(method, "$$Lambda") || method == "java.lang.Thread.runWith"
}

// seenThread is what a recording says of one thread.
type seenThread struct {
	total  int64
	states map[string]int64 // by the leaf
	stacks map[string]int64 // Java frames, leaf first
	gaps   int64            // looks whose native frames are not all told
	cut    int64            // looks that are truncated
}

// threadsIn takes a wall-clock profile apart by threads. Every stack must end in a state.
func threadsIn(t testing.TB, p *profile.Profile) map[string]*seenThread {
	t.Helper()
	threads := map[string]*seenThread{}
	p.Each(func(frames []profile.Frame, n int64) {
		label, leaf := frames[0].Func.Name, frames[len(frames)-1]
		if leaf.Kind != profile.StateFrame || !profile.IsState(leaf.Func.Name) {
			t.Fatalf("a stack of %s ends in %q, which is no state", label, leaf.Func.Name)
		}
		name, _, _ := strings.Cut(strings.TrimPrefix(label, "["), " tid=")
		th := threads[name]
		if th == nil {
			th = &seenThread{states: map[string]int64{}, stacks: map[string]int64{}}
			threads[name] = th
		}
		th.total += n
		th.states[leaf.Func.Name] += n
		var java []string
		for _, f := range slices.Backward(frames) {
			switch {
			case f.Kind.Java() && !isHidden(f.Func.Name):
				java = append(java, f.Func.Name)
			case f.Func.Name == "[native frames that only a stop can tell]":
				th.gaps += n
			case strings.HasPrefix(f.Func.Name, "[truncated: "):
				th.cut += n
			}
		}
		th.stacks[strings.Join(java, "\n")] += n
	})
	return threads
}

// checkStates holds what was seen against what the program says. A thread that stands still may also have been woken
// and have waited for a CPU (a monitor's waiters look around now and then).
func checkStates(t *testing.T, known []knownThread, seen map[string]*seenThread, label func(knownThread) string) {
	t.Helper()
	for _, want := range known {
		th := seen[want.name]
		if th == nil {
			t.Errorf("%s was not seen", want.name)
			continue
		}
		state, ready := label(want), profile.Runnable.Label("")
		if other := th.total - th.states[state] - th.states[ready]; th.states[state] == 0 || other*20 > th.total {
			t.Errorf("%s: %v, want %s", want.name, th.states, state)
		}
		if want.state == "running" {
			continue
		}
		if th.states[state]*2 < th.total {
			t.Errorf("%s: %v, most should be %s", want.name, th.states, state)
		}
		for stack, n := range th.stacks {
			if stack != strings.Join(want.frames, "\n") && n*20 > th.total {
				t.Errorf("%s, %d of %d looks:\n%s\nwant\n%s", want.name, n, th.total, stack, strings.Join(want.frames, "\n"))
			}
		}
		if th.cut*20 > th.total {
			t.Errorf("%s: %d of %d looks are truncated", want.name, th.cut, th.total)
		}
	}
}

func plainState(k knownThread) string { return "[" + k.state + "]" }

// longEnough is d, or on a slow machine long enough for as many looks.
func longEnough(d time.Duration) time.Duration { return max(d, jvmtest.Slow(d)/2) }

// TestWallStates: every thread comes out with what it does, with the stack that the JVM itself tells, and with
// as many looks as every other.
func TestWallStates(t *testing.T) {
	t.Parallel()
	jvmtest.ForEachJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		jvm, known := startStates(t, jdk)
		opt := session.RecordOptions{Mode: session.WallMode, Interval: 5 * time.Millisecond,
			Threads: true, Weight: profile.Samples}
		p, sum := record(t, attach(t, jvm.PID), untilEnough(t, &opt, longEnough(time.Second), 3000), opt)
		seen := threadsIn(t, p)
		checkStates(t, known, seen, plainState)
		checkLooks(t, &sum)
		most, least := int64(0), int64(1<<62)
		for _, k := range known {
			if th := seen[k.name]; th != nil {
				most, least = max(most, th.total), min(least, th.total)
			}
		}
		if least < 3 || most-least > 3+sum.Lost {
			t.Errorf("threads that were there all the time were looked at %d to %d times, %d looks were lost", least, most,
				sum.Lost)
		}
		if sum.Meta.Mode != "wall" || sum.Looks.Repeated*2 < sum.Attempted {
			t.Errorf("mode %q; %d of %d looks were repeated ones", sum.Meta.Mode, sum.Looks.Repeated, sum.Attempted)
		}
	})
}

// checkLooks: every look was made in some way.
func checkLooks(t *testing.T, sum *profile.Summary) {
	t.Helper()
	l := sum.Looks
	if l == nil {
		t.Fatal("no account of the looks")
	}
	made := l.Repeated + l.Unstopped + l.Stopped
	if sum.Meta.Mode == string(session.WallMode) {
		made += l.Running
	}
	if made > sum.Attempted || made < sum.Attempted-sum.Lost { // some are lost after they were made
		t.Errorf("%d looks of %d, %d lost: %+v", made, sum.Attempted, sum.Lost, *l)
	}
}

// TestWallOnlyStates: looks that found a thread in another state are no samples, and are counted.
func TestWallOnlyStates(t *testing.T) {
	t.Parallel()
	jvmtest.ForNewestJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		jvm, known := startStates(t, jdk)
		wanted := map[profile.State]bool{profile.Blocked: true, profile.Sleeping: true}
		opt := session.RecordOptions{Mode: session.WallMode,
			Interval: 5 * time.Millisecond, Threads: true, States: func(s profile.State) bool { return wanted[s] }}
		p, sum := record(t, attach(t, jvm.PID), untilEnough(t, &opt, longEnough(time.Second), 300), opt)
		seen := threadsIn(t, p)
		for _, k := range known {
			if th := seen[k.name]; (th != nil) != (k.state == "blocked" || k.state == "sleeping") {
				t.Errorf("%s, %s: %+v", k.name, k.state, th)
			} else if th != nil && th.states["["+k.state+"]"] != th.total {
				t.Errorf("%s is %s: %v", k.name, k.state, th.states)
			}
		}
		if all := sum.Attempted + sum.Looks.Others; sum.Looks.Others < sum.Attempted || sum.Looks.Repeated > all {
			t.Errorf("%d samples, %d looks left out: %+v", sum.Attempted, sum.Looks.Others, *sum.Looks)
		}
	})
}

// TestOffCPU: only what waits is shown, with what it waits for.
func TestOffCPU(t *testing.T) {
	t.Parallel()
	jvmtest.ForEachJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		jvm, known := startStates(t, jdk)
		opt := session.RecordOptions{Mode: session.WaitingMode, Interval: 5 * time.Millisecond,
			Threads: true, Weight: profile.Samples}
		p, sum := record(t, attach(t, jvm.PID), untilEnough(t, &opt, longEnough(time.Second), 3000), opt)
		seen := threadsIn(t, p)
		files := map[string]string{"is-accepting": "poll accept", "is-receiving": "poll receive read",
			"is-selecting": "select poll", "is-reading": "read"}
		checkStates(t, slices.DeleteFunc(known, func(k knownThread) bool { return k.state == "running" }), seen,
			func(k knownThread) string {
				for _, what := range strings.Fields(files[k.name]) { // which call it is differs between releases
					if label := "[" + k.state + ": " + what + "]"; seen[k.name] != nil && seen[k.name].states[label] > 0 {
						return label
					}
				}
				if k.waitsFor == "" {
					return plainState(k)
				}
				return "[" + k.state + ": " + k.waitsFor + "]"
			})
		checkLooks(t, &sum)
		for name, th := range seen {
			if n := th.states["[running]"]; n != 0 {
				t.Errorf("%s is shown running %d times", name, n)
			}
		}
		if sum.Pauses.Count != 0 || sum.Looks.Running == 0 {
			t.Errorf("%d threads were stopped, %d were seen running", sum.Pauses.Count, sum.Looks.Running)
		}
	})
}

// TestWallNeverStopsTheBlocked: a thread that is stopped in a system call is woken for it, which the kernel counts.
// Threads at rest are not, in wall mode; with NativeOnce they are, so the count would show it.
func TestWallNeverStopsTheBlocked(t *testing.T) {
	jvmtest.ForNewestJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		jvm, known := startStates(t, jdk)
		s := attach(t, jvm.PID)
		names := map[string]bool{}
		for _, k := range known {
			// Those that wait for a monitor look around now and then by themselves.
			names[k.name] = k.state != "running" && k.state != "blocked"
		}
		awaitSleep(t, s, names)
		opt := session.RecordOptions{Mode: session.WallMode, Interval: 5 * time.Millisecond, Threads: true,
			Weight: profile.Samples}
		before := switchesOf(t, s, names)
		p, sum := record(t, s, untilEnough(t, &opt, longEnough(time.Second), 3000), opt)
		seen := threadsIn(t, p)
		for _, k := range known {
			th := seen[k.name] // what waits for a socket may wait in a library whose rules need the frame pointer
			if parks := k.state == "parked" || k.state == "sleeping" ||
				k.state == "waiting"; parks && th != nil && th.gaps*10 > th.total {
				t.Errorf("%s: %d of %d looks without a stop lack native frames", k.name, th.gaps, th.total)
			}
		}
		if now := switchesOf(t, s, names); !maps.Equal(now, before) {
			t.Errorf("threads at rest were woken: %v, then %v", before, now)
		}
		if sum.Pauses.Count == 0 || sum.Looks.AtRest != 0 {
			t.Errorf("%d stops, %d of them of threads at rest: the one that runs should have been stopped", sum.Pauses.Count,
				sum.Looks.AtRest)
		}

		opt.NativeOnce = true
		before = switchesOf(t, s, names)
		p, sum = record(t, s, untilEnough(t, &opt, longEnough(time.Second), 3000), opt)
		now := switchesOf(t, s, names)
		for name := range before {
			if now[name] == before[name] {
				t.Errorf("%s was stopped once and the kernel did not count it: this test proves nothing", name)
			}
		}
		if sum.Looks.AtRest < int64(len(before)) {
			t.Errorf("%d threads were stopped at rest, there are %d at least", sum.Looks.AtRest, len(before))
		}
		seen = threadsIn(t, p)
		checkStates(t, known, seen, plainState)
		for name := range before {
			if th := seen[name]; th != nil && th.gaps*2 > th.total { // a stop that was lost on its way is made again
				t.Errorf("%s: %d of %d looks lack native frames", name, th.gaps, th.total)
			}
		}
	})
}

// awaitSleep waits until the kernel has the threads with these names asleep: one may have been on its way.
func awaitSleep(t *testing.T, s *session.Session, names map[string]bool) {
	t.Helper()
	threads, err := s.Threads()
	if err != nil {
		t.Fatal(err)
	}
	for tid, th := range threads {
		if names[th.Name] {
			ctest.Eventually(t, th.Name+" sleeps", func() bool { return ctest.State(s.Process.PID(), tid) == 'S' })
		}
	}
}

// switchesOf is how often the kernel has switched from each of the threads with these names.
func switchesOf(t *testing.T, s *session.Session, names map[string]bool) map[string]string {
	t.Helper()
	threads, err := s.Threads()
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]string{}
	for tid, th := range threads {
		if !names[th.Name] {
			continue
		}
		file, err := os.Open(fmt.Sprintf("/proc/%d/task/%d/status", s.Process.PID(), tid))
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		for in := bufio.NewScanner(file); in.Scan(); {
			if name, value, _ := strings.Cut(in.Text(), ":"); strings.HasSuffix(name, "voluntary_ctxt_switches") {
				counts[th.Name] += strings.TrimSpace(value) + " "
			}
		}
	}
	if len(counts) == 0 {
		t.Fatal("no threads of these names")
	}
	return counts
}

// TestWallNonBlocking: no thread is stopped; one that runs is there without a stack, and says why.
func TestWallNonBlocking(t *testing.T) {
	t.Parallel()
	jvmtest.ForNewestJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		jvm, known := startStates(t, jdk)
		opt := session.RecordOptions{Mode: session.WallMode, NonBlocking: true,
			Interval: 5 * time.Millisecond, Threads: true, Weight: profile.Samples}
		p, sum := record(t, attach(t, jvm.PID), untilEnough(t, &opt, longEnough(time.Second), 3000), opt)
		seen := threadsIn(t, p)
		checkStates(t, known, seen, plainState)
		checkLooks(t, &sum)
		if sum.Pauses.Count != 0 || sum.Looks.Stopped != 0 {
			t.Errorf("%d pauses, %d stops", sum.Pauses.Count, sum.Looks.Stopped)
		}
		if th := seen["is-spinning"]; th == nil || th.cut != th.total ||
			sum.TruncatedBy[profile.NotStopped.String()] < th.total {
			t.Errorf("what ran and was not stopped: %+v; truncated %v", th, sum.TruncatedBy)
		}
	})
}

// TestWallTime: in nanoseconds every thread has the time that passed.
func TestWallTime(t *testing.T) {
	jvmtest.ForNewestJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		jvm, known := startStates(t, jdk)
		s := attach(t, jvm.PID)
		again(t, func(t testing.TB) { wallTime(t, s, known) })
	})
}

func wallTime(t testing.TB, s *session.Session, known []knownThread) {
	opt := session.RecordOptions{Mode: session.WallMode, Interval: 5 * time.Millisecond, Threads: true,
		Weight: profile.WallTime}
	p, sum, err := s.Record(untilEnough(t, &opt, longEnough(time.Second), 3000), opt)
	if err != nil {
		t.Fatal(err)
	}
	total := int64(0)
	p.Each(func(_ []profile.Frame, n int64) { total += n })
	if total != int64(sum.Looks.Time) {
		fact(t).Errorf("stacks of %d ns, the account says %d", total, sum.Looks.Time)
	}
	if sum.Lost > 0 {
		t.Logf("%d looks lost: %v", sum.Lost, sum.LostBy)
	}
	// From its first look to its last; how long one look takes to come is the machine's affair.
	for _, k := range known {
		th := threadsIn(t, p)[k.name]
		if th == nil || th.total > int64(sum.Meta.Duration) || th.total < int64(sum.Meta.Duration)/4 {
			t.Errorf("%s: %+v of %d ns", k.name, th, sum.Meta.Duration)
		}
	}
}

// TestWallWhileObjectsMove: states and classes are right, or unknown, while the collector moves all that tells of them.
func TestWallWhileObjectsMove(t *testing.T) {
	t.Parallel()
	jvmtest.ForEachJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		collectors := []string{"-XX:+UseParallelGC"}
		if jdk.Version >= 15 {
			collectors = append(collectors, "-XX:+UseZGC")
		}
		for _, flag := range jvmtest.Drawn(t, 1, collectors) {
			t.Run(flag, func(t *testing.T) {
				jvm, known := startStates(t, jdk, flag, "-Xmx256m")
				s := attach(t, jvm.PID)
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				moved := make(chan struct{})
				go func() {
					defer close(moved)
					for ctx.Err() == nil {
						jvm.Command("moves")
					}
				}()
				p, sum := record(t, s, context.Background(),
					session.RecordOptions{Duration: longEnough(2 * time.Second), Mode: session.WaitingMode,
						Interval: 5 * time.Millisecond, Threads: true, Weight: profile.Samples})
				cancel()
				<-moved
				checkLooks(t, &sum)
				seen := threadsIn(t, p)
				for _, k := range known {
					th := seen[k.name]
					if k.state == "running" || th == nil {
						continue
					}
					for label := range th.states {
						state, what, _ := strings.Cut(strings.Trim(label, "[]"), ": ")
						// A state without what it waits for is honest; the class of something else is not. With an
						// array the brackets are the name's.
						if state != k.state && state != "runnable" ||
							what != "" && k.waitsFor != "" && strings.TrimRight(what, "[]") != strings.TrimRight(k.waitsFor, "[]") {
							t.Errorf("%s is %s", k.name, label)
						}
					}
				}
			})
		}
	})
}
