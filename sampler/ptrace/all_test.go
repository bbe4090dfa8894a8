//go:build linux

package ptrace

import (
	"os"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"goprof/sampler/look"
	"goprof/testdata/ctest"
)

// No thread stays stopped while the snapshot of another one is walked. Here twelve threads that never rest share the
// CPUs, so most of them stop late.
func TestNobodyWaitsForAWalk(t *testing.T) {
	p := ctest.Run(t, ctest.Shares, "12", "1", "0")
	var threads []Subject
	for range 12 {
		threads = append(threads, Subject{TID: p.Number(t)})
	}
	for range 20 {
		left := map[int]bool{}
		for _, th := range threads {
			left[th.TID] = true
		}
		onTracer(t, p.PID, func(tr *Tracer) {
			AllUntil(nil, tr, lastWait, threads, func(snap *look.Look, o Outcome) {
				if o != Taken && o != TimedOut || !left[snap.TID] {
					t.Errorf("%d: %v, %v", snap.TID, o, left[snap.TID])
				}
				delete(left, snap.TID)
				if n := tr.Pending(); n != 0 && o != TimedOut {
					t.Errorf("%d threads are told to stop while one is walked", n)
				}
			})
		})
		if len(left) != 0 {
			t.Fatalf("nothing of %v", left)
		}
	}
	for _, th := range threads {
		ctest.Eventually(t, "runs on", func() bool { return ctest.State(p.PID, th.TID) == 'R' })
	}
}

// TestStopIsTheCause: a thread could not be stopped, and the kernel does not permit a look without a stop, either:
// CAP_SYS_PTRACE alone does not open another user's /proc/PID/syscall. The outcome names the stop as the cause, and the
// thread is looked at again.
func TestStopIsTheCause(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, whose files are closed to others")
	}
	p := ctest.Run(t, "int main(void) { ready(); for (;;) pause(); }")
	runtime.LockOSThread() // never unlocked: the OS thread ends with the test
	unix.RawSyscall(unix.SYS_SETFSUID, 1000, 0, 0)
	defer unix.RawSyscall(unix.SYS_SETFSUID, 0, 0, 0)
	tr := NewTracer(p.PID, ctest.NeedCPU(t))
	defer tr.Close()
	a := all{t: tr, hints: map[int]Hint{}}
	snap := &look.Look{}
	snap.TID = p.PID
	ctest.Eventually(t, "it sleeps, and a look without a stop is not permitted", func() bool {
		return tr.LookUnstopped(p.PID, Hint{}, snap) == NotPermitted
	})
	snap.TID = p.PID
	if o := a.withoutStop(snap, Unadmitted); o != Unadmitted {
		t.Errorf("the stop was not admitted: %v", o)
	}
}

// TestStopsAreAdmittedLater: goprof had to wait for a CPU, and begins no stop for a second. A dump waits for that.
func TestStopsAreAdmittedLater(t *testing.T) {
	p := ctest.Run(t, ctest.Shares, "1", "1", "0")
	tid := p.Number(t)
	onTracer(t, p.PID, func(tr *Tracer) {
		g := tr.openGate()
		g.why, g.until = NoPriority, Monotonic()+firstRest
		AllUntil(nil, tr, time.Minute, []Subject{{TID: tid}}, func(_ *look.Look, o Outcome) {
			if o != Taken {
				t.Errorf("it runs, and %v", o)
			}
		})
	})
}
