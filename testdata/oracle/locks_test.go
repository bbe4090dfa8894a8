//go:build linux

package oracle

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
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
	"goprof/profile/contention"
	"goprof/sampler/session"
	"goprof/testdata/jvmtest"
)

// lockFlags are the ways of a JDK to lock, with the collectors that move what is locked.
func lockFlags(jdk jvmtest.JDK) (all []string) {
	all = []string{"-XX:+UseSerialGC -Xint", "-XX:+UseParallelGC -XX:-UseCompressedOops"}
	if jdk.Version >= 9 {
		all = append(all, "-XX:+UseG1GC -XX:TieredStopAtLevel=1 -Xcomp -XX:CompileCommand=quiet -XX:CompileOnly=truth/*.*")
	} else {
		all = append(all, "-XX:+UseConcMarkSweepGC -XX:TieredStopAtLevel=1 -Xcomp")
	}
	all = append(all, "-XX:-TieredCompilation -Xcomp -XX:CompileCommand=quiet -XX:CompileOnly=truth/*.*")
	for _, collector := range []string{"-XX:+UseZGC", "-XX:+UseShenandoahGC"} {
		if jdk.Version >= 15 && refuses(jdk, []string{collector}) == "" {
			all = append(all, collector)
		}
	}
	switch {
	case jdk.Version == 11:
		all = append(all, "-XX:-UseBiasedLocking")
	case jdk.Version == 21:
		for mode := range 3 {
			all = append(all, fmt.Sprintf("-XX:+UnlockExperimentalVMOptions -XX:LockingMode=%d", mode))
		}
		all = append(all, "-XX:+UseZGC -XX:+ZGenerational")
	case jdk.Version == 25:
		all = append(all, "-XX:LockingMode=1", "-XX:+UnlockDiagnosticVMOptions -XX:+UseObjectMonitorTable",
			"-XX:+UnlockExperimentalVMOptions -XX:+UseCompactObjectHeaders")
	case jdk.Version >= 27:
		all = append(all, "-XX:+UnlockDiagnosticVMOptions -XX:-UseObjectMonitorTable")
	}
	return all
}

// lockNode is what truth.LocksGraph says of one of its threads.
type lockNode struct {
	kind, class string
	waitsFor    int
	virtual     bool
}

// startGraph starts threads that wait for each other's locks.
func startGraph(t *testing.T, jdk jvmtest.JDK, flags string, seed, threads int, kinds string,
	virtual int) (*jvmtest.JVM, []lockNode) {
	t.Helper()
	line := append(strings.Fields(flags), "-Xmx128m", "--", strconv.Itoa(seed), strconv.Itoa(threads), kinds,
		strconv.Itoa(virtual))
	jvm := jvmtest.Start(t, jdk, "truth.LocksGraph", line...)
	var nodes []lockNode
	for _, l := range jvm.Command("truth") {
		f := strings.Fields(l)
		waitsFor, err := strconv.Atoi(f[4])
		if err != nil || f[0] != "NODE" || f[1] != strconv.Itoa(len(nodes)) {
			t.Fatalf("the program says %q", l)
		}
		nodes = append(nodes, lockNode{f[2], f[3], waitsFor, f[5] == "virtual"})
	}
	return jvm, nodes
}

// lockedIn finds the program's threads in a dump.
func lockedIn(threads []profile.ThreadDump) map[string]*profile.ThreadDump {
	m := map[string]*profile.ThreadDump{}
	for i := range threads {
		if t := &threads[i]; strings.HasPrefix(t.Name, "lock-") {
			m[t.Name] = t
		}
	}
	return m
}

func lockName(i int) string { return "lock-" + strconv.Itoa(i) }

// judgeLocks compares what is told with the truth. Where not all can be known, what is told must still be right.
func judgeLocks(t *testing.T, nodes []lockNode, threads []profile.ThreadDump, all bool) (told, of int) {
	t.Helper()
	named := lockedIn(threads)
	ids := map[int]uint64{} // of each lock, as those that want it tell
	owners := make([]int, len(nodes))
	for i, n := range nodes {
		owners[i] = -1
		th := named[lockName(i)]
		if th == nil || n.virtual {
			continue
		}
		w := th.WaitsFor
		if n.waitsFor < 0 {
			if w != nil && (w.Owner != profile.ThreadRef{} || w.Kind == profile.Exclusive) {
				t.Errorf("%s waits for nobody, but %+v is told", th.Name, w)
			}
			continue
		}
		of++
		owner := nodes[n.waitsFor]
		owners[i] = n.waitsFor
		if w == nil || w.Owner == (profile.ThreadRef{}) {
			// An unmounted owner of a monitor that nobody wanted when it was mounted is not known (docs/locks.md).
			if all && !(owner.kind == "s" && w != nil) && !(owner.kind == "m" && owner.virtual && w != nil) {
				t.Errorf("%s: nothing is told of its waiting for %d (%+v)", th.Name, n.waitsFor, w)
			}
			continue
		}
		told++
		checkWanted(t, th.Name, w, n.waitsFor, owner, all)
		if id, known := ids[n.waitsFor]; known && id != w.ID {
			t.Errorf("lock %d has two identities: %#x, %#x", n.waitsFor, id, w.ID)
		}
		ids[n.waitsFor] = w.ID
	}
	for i, n := range nodes {
		if th := named[lockName(i)]; th != nil && !n.virtual {
			checkHeld(t, th, i, n, ids, all)
		}
	}
	if all {
		checkDeadlocks(t, owners, threads)
	}
	return told, of
}

func checkWanted(t *testing.T, name string, w *profile.WantedLock, i int, owner lockNode, all bool) {
	t.Helper()
	how, kind := profile.ToUnpark, profile.Exclusive
	switch owner.kind {
	case "m":
		how, kind = profile.ToEnter, profile.Monitor
	case "s":
		kind = profile.Shared
	}
	class := owner.class
	if !all && w.Class == "" {
		class = ""
	}
	if w.How != how || w.Kind != kind || w.Class != class || w.Owner.Name != lockName(i) || w.Timed {
		t.Errorf("%s waits for lock %d %+v, told is %+v", name, i, owner, *w)
	}
	if w.Owner.TID == 0 && !owner.virtual || owner.virtual && w.Owner.Virtual == 0 {
		t.Errorf("%s: its owner is %+v", name, w.Owner)
	}
}

// checkHeld: of its monitors each is told once, and in the method that took it.
func checkHeld(t *testing.T, th *profile.ThreadDump, i int, n lockNode, ids map[int]uint64, all bool) {
	t.Helper()
	own, lock := 0, 0
	for _, h := range th.Holds {
		method := ""
		if h.Frame >= 0 {
			method = th.Stack.Frames[h.Frame].Func.Name
		}
		switch {
		case h.Class == "truth.LocksGraph$Own" && h.Kind == profile.Monitor:
			own++
			if !all && method == "" {
				continue
			}
			if method != "truth.LocksGraph.nested" {
				t.Errorf("%s took a monitor of its own in %q", th.Name, method)
			}
		case h.Class == n.class || h.Class == "":
			lock++
			if want, known := ids[i]; known && h.ID != want {
				t.Errorf("%s holds %#x, others wait for its %#x", th.Name, h.ID, want)
			}
			if n.kind == "m" && method != "truth.LocksGraph.holdMonitor" && (all || method != "") {
				t.Errorf("%s took its lock in %q", th.Name, method)
			}
		default:
			t.Errorf("%s is said to hold %+v", th.Name, h)
		}
	}
	_, wanted := ids[i]
	wantLock := 0
	if n.kind == "m" || wanted {
		wantLock = 1
	}
	if own > i%4 || lock > 1 || all && (own != i%4 || lock != wantLock) {
		t.Errorf("%s %+v holds %d of its own and %d locks, should be %d and %d: %+v", th.Name, n, own, lock, i%4, wantLock,
			th.Holds)
	}
}

// checkDeadlocks compares the cycles.
func checkDeadlocks(t *testing.T, owners []int, threads []profile.ThreadDump) {
	t.Helper()
	told := deadlocksIn(threads)
	if want := cyclesOf(owners); !slices.Equal(told, want) {
		t.Errorf("deadlocks %q, should be %q", told, want)
	}
}

// deadlocksIn names the threads of each deadlock.
func deadlocksIn(threads []profile.ThreadDump) (told []string) {
	for _, cycle := range contention.New(threads).Deadlocks {
		var names []string
		for _, i := range cycle {
			names = append(names, threads[i].Name)
		}
		slices.Sort(names)
		told = append(told, strings.Join(names, " "))
	}
	slices.Sort(told)
	return told
}

func cyclesOf(owners []int) (cycles []string) {
	done := map[int]bool{}
	for i := range owners {
		at, steps := owners[i], 0
		for at >= 0 && at != i && steps < len(owners) {
			at, steps = owners[at], steps+1
		}
		if at != i || done[i] {
			continue
		}
		names := []string{lockName(i)}
		done[i] = true
		for at = owners[i]; at != i; at = owners[at] {
			names = append(names, lockName(at))
			done[at] = true
		}
		slices.Sort(names)
		cycles = append(cycles, strings.Join(names, " "))
	}
	slices.Sort(cycles)
	return cycles
}

// lockDump dumps until every thread has stopped for its stack, and had a CPU to go back to sleep on before the locks
// were read: of those that have not nothing is told. On a busy machine that takes several dumps.
func lockDump(t *testing.T, s *session.Session) []profile.ThreadDump {
	t.Helper()
	for tries := 0; ; tries++ {
		threads, err := s.Dump(session.DumpOptions{Locks: true})
		if err != nil {
			t.Fatal(err)
		}
		if session.NotStopped(threads) == 0 && !untold(threads) || tries == 10 {
			return threads
		}
	}
}

// untold reports whether a thread that waits is not told to.
func untold(threads []profile.ThreadDump) bool {
	return slices.ContainsFunc(threads, func(t profile.ThreadDump) bool {
		return strings.HasPrefix(t.Name, "lock-") && (t.State == "BLOCKED" || t.State == "PARKED") && t.WaitsFor == nil
	})
}

// lockRounds is how many JVMs each way of locking is tried with.
func lockRounds() int {
	if os.Getenv("GOPROF_PROVE") == "1" {
		return 10
	}
	return 1
}

// TestLocks: waits, owners, what is held and in which frame, and deadlocks are what the program knows. It is looked at
// as it stands, and stopped by SIGSTOP.
func TestLocks(t *testing.T) {
	jvmtest.ForEachJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		for n, flags := range lockFlags(jdk) {
			t.Run(flags, func(t *testing.T) {
				for round := range lockRounds() {
					seed := 100*n + round + jdk.Version
					size := 2 + rand.New(rand.NewPCG(uint64(seed), 1)).IntN(49)
					jvm, nodes := startGraph(t, jdk, flags, seed, size, "mrws", 0)
					s := attach(t, jvm.PID)
					// Where generational ZGC has moved an object, a stale reference to it may lead nowhere (docs/locks.md).
					all := jdk.Version < 21 || !strings.Contains(flags, "UseZGC")
					told, of := judgeLocks(t, nodes, lockDump(t, s), all)
					syscall.Kill(jvm.PID, syscall.SIGSTOP)
					stopped, _ := judgeLocks(t, nodes, lockDump(t, s), all)
					syscall.Kill(jvm.PID, syscall.SIGCONT)
					if told*4 < of*3 {
						t.Errorf("only %d of %d waits are told", told, of)
					}
					t.Logf("seed %d, %d threads: %d of %d waits told, %d when stopped", seed, size, told, of, stopped)
					jvm.Quit()
				}
			})
		}
	})
}

// TestLocksWhileObjectsMove: what is told is right while the collector moves all objects.
func TestLocksWhileObjectsMove(t *testing.T) {
	jvmtest.ForEachJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		for n, flags := range lockFlags(jdk) {
			t.Run(flags, func(t *testing.T) {
				jvm, nodes := startGraph(t, jdk, flags, 7+n, 30, "mrws", 0)
				s := attach(t, jvm.PID)
				end, ended := make(chan struct{}), make(chan struct{})
				go func() {
					defer close(ended)
					for {
						select {
						case <-end:
							return
						default:
							jvm.Command("moves")
						}
					}
				}()
				told, of := 0, 0
				for range 3 * lockRounds() {
					threads, err := s.Dump(session.DumpOptions{Locks: true})
					if err != nil {
						t.Error(err)
						break
					}
					a, b := judgeLocks(t, nodes, threads, false)
					told, of = told+a, of+b
				}
				close(end)
				<-ended
				t.Logf("%d of %d waits told", told, of)
			})
		}
	})
}

// TestLocksBesideJstack: the deadlocks are those that jstack -l finds. It knows nothing of readers.
func TestLocksBesideJstack(t *testing.T) {
	deadlocked := regexp.MustCompile(`(?m)^"(lock-\d+)":$`)
	jvmtest.ForEachJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		if _, err := os.Stat(jdk.Tool("jstack")); err != nil {
			t.Skipf("this JDK has no jstack: %v", err)
		}
		for seed := range 2 * lockRounds() {
			jvm, nodes := startGraph(t, jdk, "-XX:+UseSerialGC", seed, 12, "mrw", 0)
			threads := lockDump(t, attach(t, jvm.PID))
			judgeLocks(t, nodes, threads, true)
			out, err := exec.Command(jdk.Tool("jstack"), "-l", strconv.Itoa(jvm.PID)).Output()
			if err != nil {
				t.Fatal(err)
			}
			var theirs, ours []string
			for _, m := range deadlocked.FindAllSubmatch(out, -1) {
				theirs = append(theirs, string(m[1]))
			}
			// It also names threads that only wait for one that is deadlocked, where its search came by these.
			ours = strings.Fields(strings.Join(deadlocksIn(threads), " "))
			theirs = slices.DeleteFunc(theirs, func(name string) bool { return onlyBehind(nodes, name) })
			slices.Sort(theirs)
			slices.Sort(ours)
			if theirs = slices.Compact(theirs); !slices.Equal(theirs, ours) {
				t.Errorf("seed %d: jstack finds %v in deadlocks, goprof %v", seed, theirs, ours)
			}
			jvm.Quit()
		}
	})
}

// onlyBehind reports whether following the owners from a thread never comes back to it.
func onlyBehind(nodes []lockNode, name string) bool {
	start, err := strconv.Atoi(strings.TrimPrefix(name, "lock-"))
	if err != nil || start >= len(nodes) {
		return false
	}
	at := start
	for range nodes {
		if at = nodes[at].waitsFor; at < 0 || at == start {
			return at < 0
		}
	}
	return true
}

// TestLocksOfVirtualThreads: a virtual thread is told as an owner, with a carrier or without.
func TestLocksOfVirtualThreads(t *testing.T) {
	jvmtest.ForEachJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		if jdk.Version < 21 {
			return
		}
		for seed := range 2 * lockRounds() {
			jvm, nodes := startGraph(t, jdk, "-Djdk.virtualThreadScheduler.parallelism=32", seed, 20, "mrw", 6)
			judgeLocks(t, nodes, lockDump(t, attach(t, jvm.PID)), true)
			jvm.Quit()
		}
	})
}

// TestLocksBusy: of a program that locks and unlocks all the time no deadlock is told, and nobody is said to hold or
// want what cannot be.
func TestLocksBusy(t *testing.T) {
	const threads = 24
	jvmtest.ForEachJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		flags := []string{"-XX:+UseSerialGC"}
		if jdk.Version >= 17 {
			flags = append(flags, "-XX:+UseZGC")
		}
		for _, flag := range flags {
			t.Run(flag, func(t *testing.T) {
				file := filepath.Join(t.TempDir(), "counts")
				jvm := jvmtest.Start(t, jdk, "truth.LocksBusy", flag, "-Xmx128m", "--", file, strconv.Itoa(threads))
				s := attach(t, jvm.PID)
				waits, holds := 0, 0
				began := time.Now()
				snapshots := envNumber("GOPROF_LOCKS_SNAPSHOTS", 100)
				for n := range snapshots {
					if n%50 == 49 {
						jvm.Command("gc")
					}
					before := readCounts(t, file, threads)
					dump, err := s.Dump(session.DumpOptions{Locks: true})
					if err != nil {
						t.Fatal(err)
					}
					w, h := judgeBusy(t, dump, before, readCounts(t, file, threads))
					waits, holds = waits+w, holds+h
					if t.Failed() {
						t.Fatalf("in snapshot %d", n)
					}
				}
				t.Logf("%d snapshots in %v: %d waits with an owner and %d held locks, all possible; no deadlock", snapshots,
					time.Since(began).Round(time.Second), waits, holds)
				if waits == 0 || holds == 0 {
					t.Errorf("%d waits and %d held locks were told", waits, holds)
				}
			})
		}
	})
}

// readCounts reads how often threads have begun to take each lock, and how often they have given it back.
func readCounts(t *testing.T, file string, threads int) []uint64 {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil || len(b) != 8*32*threads {
		t.Fatalf("%d bytes of counts, %v", len(b), err)
	}
	counts := make([]uint64, len(b)/8)
	for i := range counts {
		counts[i] = binary.LittleEndian.Uint64(b[8*i:])
	}
	return counts
}

func judgeBusy(t *testing.T, threads []profile.ThreadDump, before, after []uint64) (waits, holds int) {
	t.Helper()
	if d := deadlocksIn(threads); len(d) > 0 {
		t.Errorf("deadlocks %q", d)
	}
	// possible: the thread has begun to take the lock before the dump ended, and has not given it back when it began.
	possible := func(name, class, what string) {
		thread, err := strconv.Atoi(strings.TrimPrefix(name, "busy-"))
		lock, err2 := strconv.Atoi(strings.TrimLeft(strings.TrimPrefix(class, "truth.LocksBusy$"), "MQ"))
		if err != nil || err2 != nil || thread%4 != lock%4 {
			t.Errorf("%q is said to %s %s", name, what, class)
			return
		}
		if at := 32*thread + 2*lock; after[at] <= before[at+1] {
			t.Errorf("%s is said to %s %s: it has begun %d times until the dump ended, and had ended %d times when that began",
				name, what, class, after[at], before[at+1])
		}
	}
	for i := range threads {
		th := &threads[i]
		if !strings.HasPrefix(th.Name, "busy-") {
			continue
		}
		if w := th.WaitsFor; w != nil && w.Class != "" {
			possible(th.Name, w.Class, "want")
			if w.Owner.TID != 0 {
				possible(w.Owner.Name, w.Class, "own")
				waits++
			}
		}
		for _, h := range th.Holds {
			if h.Class != "" {
				possible(th.Name, h.Class, "hold")
				holds++
			}
		}
	}
	return waits, holds
}

// BenchmarkLocksOfDump compares dumps with locks and without, of a program of 300 threads. It prints the ratio of the
// medians.
func BenchmarkLocksOfDump(b *testing.B) {
	for _, jdk := range jvmtest.JDKs(b) {
		b.Run(jdk.String(), func(b *testing.B) {
			jvm := jvmtest.Start(b, jdk, "truth.LocksGraph", "-Xmx128m", "--", "1", "280", "mrws", "0")
			s := attach(b, jvm.PID)
			var took [2][]time.Duration
			for n := range 2 * (b.N + 10) {
				began := time.Now()
				if _, err := s.Dump(session.DumpOptions{Locks: n%2 == 1}); err != nil {
					b.Fatal(err)
				}
				took[n%2] = append(took[n%2], time.Since(began))
			}
			for i := range took {
				slices.Sort(took[i])
			}
			without, with := took[0][len(took[0])/2], took[1][len(took[1])/2]
			b.ReportMetric(float64(without.Microseconds())/1000, "ms-without")
			b.ReportMetric(float64(with.Microseconds())/1000, "ms-with")
			b.ReportMetric(float64(with)/float64(without), "ratio")
		})
	}
}
