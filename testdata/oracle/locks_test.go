//go:build linux

package oracle

import (
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"goprof/testdata/jvmtest"
)

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
	t.Parallel()
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
					for _, way := range []lockWay{asDump, asLocks} {
						told, of := judgeLocks(t, nodes, lockDump(t, s, way), all)
						syscall.Kill(jvm.PID, syscall.SIGSTOP)
						stopped, _ := judgeLocks(t, nodes, lockDump(t, s, way), all)
						syscall.Kill(jvm.PID, syscall.SIGCONT)
						if told*4 < of*3 {
							t.Errorf("only %d of %d waits are told", told, of)
						}
						t.Logf("seed %d, %d threads: %d of %d waits told, %d when stopped", seed, size, told, of, stopped)
					}
					jvm.Quit()
				}
			})
		}
	})
}

// TestLocksWhileObjectsMove: what is told is right while the collector moves all objects.
func TestLocksWhileObjectsMove(t *testing.T) {
	t.Parallel()
	jvmtest.ForEachJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		for n, flags := range jvmtest.Drawn(t, 2, lockFlags(jdk)) {
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
				for n := range 4 * lockRounds() {
					threads, err := s.Dump(lockWay(n%2 == 1).options())
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
	t.Parallel()
	deadlocked := regexp.MustCompile(`(?m)^"(lock-\d+)":$`)
	jvmtest.ForEachJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		if _, err := os.Stat(jdk.Tool("jstack")); err != nil {
			t.Skipf("this JDK has no jstack: %v", err)
		}
		for seed := range 2 * lockRounds() {
			jvm, nodes := startGraph(t, jdk, "-XX:+UseSerialGC", seed, 12, "mrw", 0)
			threads := lockDump(t, attach(t, jvm.PID), asLocks)
			judgeLocks(t, nodes, threads, true)
			out, err := ask(t, jvm.PID, jdk.Tool("jstack"), "-l", strconv.Itoa(jvm.PID))
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
	t.Parallel()
	jvmtest.ForEachJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		if jdk.Version < 21 {
			return
		}
		for seed := range 2 * lockRounds() {
			jvm, nodes := startGraph(t, jdk, "-Djdk.virtualThreadScheduler.parallelism=32", seed, 20, "mrw", 6)
			judgeLocks(t, nodes, lockDump(t, attach(t, jvm.PID), asLocks), true)
			jvm.Quit()
		}
	})
}

// TestLocksVirtualThreadsWaitFor: what a virtual thread waits for is told, also where no carrier runs it, and the
// deadlocks that it is in. Up to 23 those that hold monitors keep their carriers.
func TestLocksVirtualThreadsWaitFor(t *testing.T) {
	t.Parallel()
	jvmtest.ForEachJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		if jdk.Version < 21 {
			return
		}
		for seed := range 2 * lockRounds() {
			for _, c := range []struct{ kinds, flags string }{{"rw", ""}, {"mr", ""}, {"rw", " -XX:+UseZGC"}} {
				jvm, nodes := startGraph(t, jdk, "-Djdk.virtualThreadScheduler.parallelism=32"+c.flags, seed, 20, c.kinds, 14,
					"all")
				if c.flags != "" {
					jvm.Command("moves") // and leaves stale references behind
				}
				told, of := judgeLocks(t, nodes, lockDump(t, attach(t, jvm.PID), asLocks), c.flags == "")
				if t.Logf("%v: %d of %d waits with their owners", c, told, of); told*4 < of*3 {
					t.Errorf("%v: only %d of %d waits with their owners", c, told, of)
				}
				jvm.Quit()
			}
		}
	})
}
