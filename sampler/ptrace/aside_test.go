//go:build linux

package ptrace

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"goprof/sampler/look"
	"goprof/testdata/ctest"
)

// onCPUOf runs f with real-time priority on the CPU of a program that spins. here is that CPU, there is another one.
func onCPUOf(t *testing.T, p *ctest.Program, f func(tr *Tracer, here, there int)) {
	t.Helper()
	onTracer(t, p.PID, func(tr *Tracer) {
		var ours unix.CPUSet
		if err := unix.SchedGetaffinity(0, &ours); err != nil {
			t.Fatal(err)
		}
		if ours.Count() < 2 || ownPolicy(t) != unix.SCHED_FIFO {
			t.Skip("real-time priority is not permitted here: run as root, on two CPUs or more")
		}
		here := 0
		for !ours.IsSet(here) {
			here++
		}
		there := here + 1
		for !ours.IsSet(there) {
			there++
		}
		goTo(t, 0, here)
		goTo(t, p.PID, here)
		if !tr.Prepare() {
			t.Fatal(tr.Err())
		}
		h, err := NewPreempters()
		if err != nil {
			t.Fatal(err)
		}
		defer h.End()
		for _, cpu := range []int{here, there} {
			if err := h.Send(cpu, nil); err != nil {
				t.Fatal(err)
			}
		}
		tr.ServedBy(h)
		beAt(t, tr, here)
		tr.GoOnAt(1)
		f(tr, here, there)
	})
}

// beAt goes to the CPU of the first preempter, as if that preempter had called.
func beAt(t *testing.T, tr *Tracer, here int) {
	t.Helper()
	goTo(t, 0, here)
	tr.BoundTo(here)
	tr.preempters.shared.at.Store(0)
}

func goTo(t *testing.T, tid, cpu int) {
	t.Helper()
	var one unix.CPUSet
	one.Set(cpu)
	if err := unix.SchedSetaffinity(tid, &one); err != nil {
		t.Fatal(err)
	}
}

func ownPolicy(t *testing.T) uint32 {
	attr, err := unix.SchedGetAttr(0, 0)
	if err != nil {
		t.Fatal(err)
	}
	return attr.Policy
}

// sleepFor sleeps without Go's scheduler, as the engines do.
func sleepFor(d time.Duration) {
	ts := unix.NsecToTimespec(Monotonic() + int64(d))
	SleepUntil(&ts)
}

// TestLetGoAside: goprof has taken the CPU from a thread. The sampling thread releases that thread as a SCHED_IDLE
// thread, and gets its priority back afterwards, on another CPU.
func TestLetGoAside(t *testing.T) {
	p := ctest.Run(t, ctest.Spin)
	p.Number(t)
	onCPUOf(t, p, func(tr *Tracer, here, there int) {
		aside, elsewhere, snap := 0, 0, new(look.Look)
		for range 50 {
			beAt(t, tr, here)
			tr.preempters.resume = 0 // tests that run side by side want this CPU now and then
			sleepFor(2 * time.Millisecond)
			arrived := Monotonic()
			if tr.WillStepAside(&Hint{}, arrived) {
				aside++
			}
			if o := tr.LookHeld(Met{TID: p.PID, Arrived: arrived}, Hint{}, snap); o != Taken || len(snap.Stack) == 0 {
				t.Fatalf("%v, %d bytes of stack", o, len(snap.Stack))
			}
			if CurrentCPU() == there {
				elsewhere++
			}
			if ownPolicy(t) != unix.SCHED_FIFO {
				t.Fatal("goprof's priority is not back")
			}
			if s, by := ctest.State(p.PID, p.PID), ctest.TracerOf(p.PID); s == 't' || by != 0 {
				t.Fatalf("the thread is in state %c, traced by %d", s, by)
			}
		}
		t.Logf("%d of 50 let go as SCHED_IDLE, %d times brought elsewhere; pauses p50 %v max %v", aside, elsewhere,
			tr.Pauses.Quantile(.5), tr.Pauses.Max())
		if aside == 0 || elsewhere == 0 {
			t.Error("none was let go as SCHED_IDLE")
		}
	})
}

// TestPriorityComesBack: a preempter raises a thread's priority. If the thread gives up its priority only after that,
// any preempter that wakes up raises it again.
func TestPriorityComesBack(t *testing.T) {
	p := ctest.Run(t, ctest.Spin)
	p.Number(t)
	onCPUOf(t, p, func(tr *Tracer, here, _ int) {
		h := tr.preempters
		now := Monotonic()
		h.SetPatience(int64(time.Hour))
		for i := range int64(200) { // no preempter can call, but one of them wakes up
			h.Tell(0, now+int64(5*time.Millisecond)+i*int64(100*time.Millisecond), 1)
		}
		other := realTime(tracerPriority)
		other.Policy = unix.SCHED_RR
		if err := unix.SchedSetAttr(0, &other, 0); err != nil {
			t.Fatal(err)
		}
		awaitRaise := func() {
			for ownPolicy(t) != unix.SCHED_FIFO {
				if Monotonic() > now+int64(time.Minute) {
					t.Fatal("the priority is not raised")
				}
			}
		}
		h.ask(now)
		awaitRaise() // the first raise comes, however late the preempter has its CPU
		setOwnPriority(&h.idle)
		goTo(t, 0, here) // a program spins on that CPU, too
		awaitRaise()
		took := time.Duration(Monotonic() - now)
		h.shared.aside.Store(0)
		t.Logf("after %v", took)
		if took < time.Duration(raiseLate) {
			t.Errorf("after %v it was back, before it was raised again", took)
		}
	})
}

// TestNotAside: goprof does not step aside if other threads would have to wait for it, or if no CPU is idle.
func TestNotAside(t *testing.T) {
	p := ctest.Run(t, ctest.Spin)
	p.Number(t)
	onCPUOf(t, p, func(tr *Tracer, here, _ int) {
		if !tr.WillStepAside(&Hint{}, 1) {
			t.Fatal("it cannot be done at all")
		}
		if tr.WillStepAside(&Hint{Soon: true}, 1) {
			t.Error("with more to be read of the thread as soon as it is let go")
		}
		tr.pending = append(tr.pending, pendingStop{})
		if tr.WillStepAside(&Hint{}, 1) {
			t.Error("while others are told to stop")
		}
		tr.pending = tr.pending[:0]
		tr.preempters.resume = 2
		if tr.WillStepAside(&Hint{}, 1) {
			t.Error("soon after somebody else took the CPU first")
		}
		tr.preempters.resume = 0
		if tr.GoOnAt(-1); tr.WillStepAside(&Hint{}, 1) {
			t.Error("without an idle CPU")
		}
		if tr.GoOnAt(0); tr.WillStepAside(&Hint{}, 1) {
			t.Error("to the CPU where we are")
		}
	})
}
