//go:build linux

package oracle

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"goprof/profile"
	"goprof/session"
	"goprof/testdata/jvmtest"
)

// TestLocksBusy: of a program that locks and unlocks all the time no deadlock is told, and nobody is said to hold or
// want what cannot be.
func TestLocksBusy(t *testing.T) {
	t.Parallel()
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
				snapshots := envNumber("GOPROF_LOCKS_SNAPSHOTS", 60)
				for n := 0; n < snapshots || (waits == 0 || holds == 0) && n < 10*snapshots; n++ {
					if n%50 == 49 {
						jvm.Command("gc")
					}
					before := readCounts(t, file, threads)
					dump, err := s.Dump(lockWay(n%2 == 1).options())
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
