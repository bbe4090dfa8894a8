//go:build linux

package oracle

import (
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"goprof/process"
	"goprof/profile"
	"goprof/profile/contention"
	"goprof/session/postmortem"
	"goprof/testdata/corefile"
	"goprof/testdata/jvmtest"
	"goprof/triage"
	"goprof/triage/autopsy"
)

// Kinds of truth.Deadlocks.
var (
	deadlockKinds        = []string{"classes", "super", "monitor"}
	virtualDeadlockKinds = []string{"reentrant", "mixed", "virtual", "pinned"}
	healthyKinds         = []string{"slow", "held"}
	healthyVirtualKinds  = []string{"passed"}
)

func startDeadlocks(t *testing.T, jdk jvmtest.JDK, flags string, kinds, virtual []string) (*jvmtest.JVM, []string) {
	t.Helper()
	line := append(strings.Fields(flags), "-Xmx128m")
	if kinds = slices.Clone(kinds); jdk.Version >= 21 {
		kinds = append(kinds, virtual...)
		line = append(line, "-Djdk.virtualThreadScheduler.parallelism=16")
	}
	return jvmtest.Start(t, jdk, "truth.Deadlocks", append(append(line, "--"), kinds...)...), kinds
}

// TestDeadlocksOfEachKind: dump, locks, triage and the core tell deadlocks of classes under initialisation, of virtual
// threads, and of both with others; with all threads, their stacks, and what they wait for.
func TestDeadlocksOfEachKind(t *testing.T) {
	t.Parallel()
	jvmtest.ForEachJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		for n, flags := range lockFlags(jdk) {
			// TestLocks has all flags, with deadlocks of monitors and of locks.
			if n > 0 && !longForm && !strings.Contains(flags, "UseObjectMonitorTable") {
				continue
			}
			t.Run(flags, func(t *testing.T) {
				jvm, kinds := startDeadlocks(t, jdk, flags, deadlockKinds, virtualDeadlockKinds)
				s := attach(t, jvm.PID)
				var dumps []triage.Dump
				for _, way := range []lockWay{asDump, asLocks} {
					threads, waits := dumpUntil(t, s, way, func(threads []profile.ThreadDump) bool {
						return slices.Equal(ringsOf(threads), wantedRings(kinds))
					})
					checkRings(t, threads, kinds)
					dumps = append(dumps, triage.Dump{Threads: threads, Locks: true, Waits: *waits})
				}
				checkTold(t, triage.Judge(&triage.Evidence{PID: jvm.PID, Dumps: dumps}), kinds)
				if n == 0 {
					checkClassesBesideJstack(t, jdk, jvm.PID, dumps[0].Threads)
				}
				signal(t, jvm.PID, syscall.SIGSTOP)
				name := corefile.Write(t, jvm.PID)
				signal(t, jvm.PID, syscall.SIGCONT)
				defer os.Remove(name)
				j := openJVM(t, name, process.CoreOptions{})
				defer j.Close()
				for _, virtual := range []bool{false, j.HasVirtual()} {
					dead, err := j.Dump(postmortem.Options{Locks: true, Virtual: virtual})
					if err != nil {
						t.Fatal(err)
					}
					checkRings(t, dead.Threads, kinds)
					checkTold(t, *autopsy.Judge(dead, j.Facts(), "core"), kinds)
				}
			})
		}
	})
}

// checkRings: of each kind both threads are in a deadlock, with a frame of the program.
func checkRings(t *testing.T, threads []profile.ThreadDump, kinds []string) {
	t.Helper()
	for _, cycle := range contention.New(threads).Deadlocks {
		for _, i := range cycle {
			th := &threads[i]
			if !slices.ContainsFunc(th.Stack.Frames, func(f profile.Frame) bool {
				return f.Func != nil && strings.HasPrefix(f.Func.Name, "truth.Deadlocks")
			}) {
				t.Errorf("%s has no frame of the program", th.Ref())
			}
			if w := th.WaitsFor; w.Class == "" || w.Owner.Name == "" {
				t.Errorf("%s waits for %+v", th.Ref(), w)
			}
		}
	}
	if told, want := ringsOf(threads), wantedRings(kinds); !slices.Equal(told, want) {
		t.Errorf("in deadlocks are %v, should be %v", told, want)
	}
}

// ringsOf are the names of all threads in deadlocks, sorted.
func ringsOf(threads []profile.ThreadDump) (names []string) {
	for _, cycle := range contention.New(threads).Deadlocks {
		for _, i := range cycle {
			names = append(names, threads[i].Ref().Name)
		}
	}
	slices.Sort(names)
	return names
}

func wantedRings(kinds []string) (names []string) {
	for _, kind := range kinds {
		names = append(names, kind+"-1", kind+"-2")
	}
	slices.Sort(names)
	return names
}

// checkTold: the finding counts all deadlocks.
func checkTold(t *testing.T, found profile.Triage, kinds []string) {
	t.Helper()
	want := strconv.Itoa(len(kinds)) + " deadlocks"
	if !slices.ContainsFunc(found.Findings, func(f profile.Finding) bool {
		return f.ID == profile.Deadlocked && strings.Contains(f.Claim, want)
	}) {
		t.Errorf("%s are not found:\n%s", want, shown(found))
	}
}

// checkClassesBesideJstack: the classes that threads wait for are those that the JVM names, where it does (17 and
// later).
func checkClassesBesideJstack(t *testing.T, jdk jvmtest.JDK, pid int, threads []profile.ThreadDump) {
	t.Helper()
	if _, err := os.Stat(jdk.Tool("jstack")); err != nil {
		return
	}
	out, err := ask(t, pid, jdk.Tool("jstack"), "-l", strconv.Itoa(pid))
	if err != nil {
		t.Fatal(err)
	}
	const says = "waiting on the Class initialization monitor for "
	theirs := map[string]string{}
	title, name := regexp.MustCompile(`^"((?:classes|super|monitor)-\d)"`), ""
	for line := range strings.Lines(string(out)) {
		if strings.HasPrefix(line, "\"") {
			if name = ""; title.MatchString(line) {
				name = title.FindStringSubmatch(line)[1]
			}
		} else if _, class, ok := strings.Cut(line, says); ok && name != "" {
			theirs[name] = strings.TrimSpace(class)
		}
	}
	compared := 0
	for i := range threads {
		w := threads[i].WaitsFor
		if class := theirs[threads[i].Name]; class != "" {
			compared++
			if w == nil || w.Kind != profile.ClassInit || w.Class != class {
				t.Errorf("%q waits for %+v, the JVM says for class %s", threads[i].Name, w, class)
			}
		}
	}
	if jdk.Version >= 17 && compared != 5 {
		t.Errorf("%d waits were compared, should be 5", compared)
	}
}

// TestLongWaitsAreNoDeadlocks: a class that takes long to initialise, locks that are held, and locks that change hands
// are no deadlocks. For whom threads wait is told.
func TestLongWaitsAreNoDeadlocks(t *testing.T) {
	t.Parallel()
	jvmtest.ForEachJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		jvm, _ := startDeadlocks(t, jdk, "", healthyKinds, healthyVirtualKinds)
		s := attach(t, jvm.PID)
		e := triage.Evidence{PID: jvm.PID}
		for range 3 {
			owners := map[string]string{"slow-2": "slow-1", "held-2": "held-1", "held-3": "held-1"}
			threads, waits := dumpUntil(t, s, asDump, func(threads []profile.ThreadDump) bool {
				if told := deadlocksIn(threads); len(told) > 0 {
					t.Errorf("told as deadlocked: %q", told)
				}
				return !slices.ContainsFunc(threads, func(th profile.ThreadDump) bool {
					return owners[th.Name] != "" && th.WaitsFor == nil
				})
			})
			for i := range threads {
				th := &threads[i]
				if owner := owners[th.Name]; owner != "" && (th.WaitsFor == nil || th.WaitsFor.Owner.Name != owner) {
					t.Errorf("%s waits for %+v, should be of %s", th.Name, th.WaitsFor, owner)
				}
				if th.Name == "slow-2" && (th.WaitsFor == nil || th.WaitsFor.Class != "truth.Deadlocks$Slow") {
					t.Errorf("%s waits for %+v", th.Name, th.WaitsFor)
				}
			}
			e.Dumps = append(e.Dumps, triage.Dump{Threads: threads, Locks: true, Waits: *waits})
		}
		for _, f := range triage.Judge(&e).Findings {
			if f.ID == profile.Deadlocked {
				t.Errorf("%+v", f)
			}
		}
	})
}
