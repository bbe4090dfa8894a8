//go:build linux

package ptrace

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"goprof/sampler/look"
	"goprof/testdata/ctest"
)

// fifoLoop spins on the first of its CPUs with a higher real-time priority than goprof's, until it is killed, or for a
// number of seconds.
const fifoLoop = `
#define _GNU_SOURCE
#include <sched.h>
int main(int argc, char **argv) {
	ready();
	cpu_set_t all, one;
	sched_getaffinity(0, sizeof all, &all);
	CPU_ZERO(&one);
	for (int i = 0; i < CPU_SETSIZE; i++) if (CPU_ISSET(i, &all)) { CPU_SET(i, &one); break; }
	struct sched_param p = {50};
	if (sched_setaffinity(0, sizeof one, &one) || sched_setscheduler(0, SCHED_FIFO, &p)) return 1;
	alarm(atoi(argv[1]));
	for (volatile long i = 0;; i++);
}`

// TestHoldsUnderLoad looks at threads under loads in which this OS thread may have no CPU to release them. Each pause
// over the bound, and each stop that is not begun, has a cause. With GOPROF_PROVE=1 it makes 10,000 looks in each row,
// or as many as fit into a minute (if no stop begins, that is a proof, too), and no pause may be longer than the bound:
//
//	GOPROF_PROVE=1 go test ./sampler/ptrace -run TestHoldsUnderLoad -v
func TestHoldsUnderLoad(t *testing.T) {
	proves := os.Getenv("GOPROF_PROVE") == "1"
	looks := 200
	if proves {
		looks = 10_000
	}
	for _, c := range []struct {
		name    string
		threads []string // of the program that is looked at
		begin   func(t *testing.T)
		spend   time.Duration // of CPU time after each look
		long    bool          // the row runs only with GOPROF_PROVE
	}{
		{"calm, without the right to priority", []string{"1", "1000", "4000"}, dropSysNice, 0, false},
		{"60 busy loops, without the right to priority", []string{"60", "1", "0"}, dropSysNice, 0, false},
		{"60 busy loops", []string{"60", "1", "0"}, keepRights, 0, true},
		{"a tenth of a CPU for its control group", []string{"1", "1000", "4000"}, limitCPU, ms, false},
		{"a FIFO loop", []string{"4", "1000", "4000"}, func(t *testing.T) { ctest.Run(t, fifoLoop, "60") }, 0, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.long && !proves {
				t.Skip("takes long, or a CPU from all others: set GOPROF_PROVE=1")
			}
			p := ctest.Run(t, ctest.Shares, c.threads...)
			n, _ := strconv.Atoi(c.threads[0])
			tids := make([]int, n)
			for i := range tids {
				tids[i] = p.Number(t)
			}
			runtime.LockOSThread() // for good: its rights, its group and what it has seized end with the test
			c.begin(t)
			preemptAtOnce()
			tr := NewTracer(p.PID, ctest.NeedCPU(t))
			defer tr.Close()
			missed := 0
			count := func(_ *look.Look, o Outcome) {
				if o == Missed {
					missed++
				}
			}
			asked := 0
			for end := Monotonic() + int64(time.Minute); asked < looks && Monotonic() < end; asked++ {
				lookAndRest(tr, tids[asked%n], c.spend, count)
			}
			collectUntil(tr, 0, time.Minute, count)
			holds := tr.Holds()
			t.Logf("real-time priority %v; %d looks asked for, %d holds, half below %v, longest %v, over the bound %v; "+
				"not begun %v; let go by the releaser %d", tr.gate.last.urgent, asked, tr.Pauses.Count(),
				tr.Pauses.Quantile(0.5), tr.Pauses.Max(), holds.Over, holds.LeftOut, missed)
			over, leftOut := sum(holds.Over), sum(holds.LeftOut)
			if over == 0 && tr.Pauses.Max() > StandsAtMost || holds.Over[NoHindrance] > 0 || holds.LeftOut[NoHindrance] > 0 {
				t.Error("a hold without a cause")
			}
			if tr.Pauses.Count() == 0 && leftOut == 0 {
				t.Error("no hold, and no reason")
			}
			if proves && over > 0 {
				t.Errorf("%d holds were longer than %v", over, StandsAtMost)
			}
		})
	}
}

func sum(counts [NumHindrances]int64) (n int64) {
	for _, v := range counts {
		n += v
	}
	return n
}

// lookAndRest looks at a thread as soon as there is room for its stop, uses some CPU time as a walker would, and rests.
func lookAndRest(tr *Tracer, tid int, spend time.Duration, count func(*look.Look, Outcome)) {
	var ts unix.Timespec
	for tr.Pending() >= mostPending || !tr.HasRoom(tid) {
		ts = unix.NsecToTimespec(Monotonic() + int64(tr.Patience()))
		SleepUntil(&ts)
		collectAll(tr, count)
	}
	snap := new(look.Look)
	if o := tr.Look(tid, Hint{}, snap); o != Pending {
		count(snap, o)
	}
	for end := ownCPUTime(&ts) + int64(spend); ownCPUTime(&ts) < end; {
	}
	ts = unix.NsecToTimespec(Monotonic() + int64(ms))
	SleepUntil(&ts)
}

// limitCPU moves this OS thread to a control group that has a tenth of a CPU, until the test ends. The thread also
// loses real-time priority, which evades the limit.
func limitCPU(t *testing.T) {
	dropSysNice(t)
	name := fmt.Sprintf("goprof-test-%d", os.Getpid())
	v1, v2 := filepath.Join("/sys/fs/cgroup/cpu", name), filepath.Join("/sys/fs/cgroup", name)
	dir, files := v2, [][2]string{{"cgroup.type", "threaded"}, {"cpu.max", "10000 100000"}}
	join := "cgroup.threads"
	if _, err := os.Stat("/sys/fs/cgroup/cpu/tasks"); err == nil {
		dir, files, join = v1, [][2]string{{"cpu.cfs_period_us", "100000"}, {"cpu.cfs_quota_us", "10000"}}, "tasks"
	}
	if os.Mkdir(dir, 0o755) != nil {
		t.Skip("this machine lets nobody make a cgroup")
	}
	t.Cleanup(func() { os.Remove(dir) })
	for _, f := range files {
		if err := os.WriteFile(filepath.Join(dir, f[0]), []byte(f[1]), 0); err != nil {
			t.Skipf("this machine lets nobody limit a cgroup: %v", err)
		}
	}
	tid := []byte(strconv.Itoa(unix.Gettid()))
	if err := os.WriteFile(filepath.Join(dir, join), tid, 0); err != nil {
		t.Skipf("this machine lets no OS thread into a cgroup of its own: %v", err)
	}
	t.Cleanup(func() { os.WriteFile(filepath.Join(filepath.Dir(dir), join), tid, 0) }) // before the group goes
}
