//go:build linux

package visit

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"goprof/process/procfs"
	"goprof/sampler"
	"goprof/sampler/ptrace"
	"goprof/sampler/stops"
	"goprof/sampler/threads"
	"goprof/testdata/ctest"
	"goprof/testdata/jvmtest"
	"goprof/testdata/sampletest"
)

// helperRun is what a sampling process of its own prints at its end.
type helperRun struct {
	Stats sampler.Stats
	Burst int // the most samples within 100 ms
}

// goesOn is how many samples after a gap show that a helper goes on. After that many, the helper says when.
const goesOn = 5

// TestHelperSampler is not a test: other tests run it in a process of its own. It samples SAMPLER_RUN until SIGTERM,
// every millisecond or SAMPLER_INTERVAL. With SAMPLER_PANIC it panics after so many microseconds. SIGTSTP stops it
// in the same way as the command.
func TestHelperSampler(t *testing.T) {
	pid, _ := strconv.Atoi(os.Getenv("SAMPLER_RUN"))
	if pid == 0 {
		t.Skip("run by the tests that start a process which samples")
	}
	ctx, stop := signal.NotifyContext(context.Background(), unix.SIGTERM)
	defer stop()
	defer ptrace.StopAfterSuspend()()
	s, q := New(pid, ctest.CPU()), sampler.NewQueue(64)
	var got helperRun
	consumed := make(chan struct{})
	go func() {
		defer close(consumed)
		var at []int64
		after := 0 // samples since the last gap
		for snap := range q.Looks() {
			if len(at) == 0 {
				fmt.Println("begun")
				if us, err := strconv.Atoi(os.Getenv("SAMPLER_PANIC")); err == nil {
					time.Sleep(time.Duration(us) * time.Microsecond)
					panic("as a test wants it")
				}
			}
			at = append(at, snap.When)
			if n := len(at); n > 1 && snap.When-at[n-2] > threads.LongGap {
				after = 0
			}
			if after++; after == goesOn {
				fmt.Println("goes on", snap.When)
			}
			q.Done(snap)
		}
		first := 0
		for i := range at {
			for at[i]-at[first] > int64(100*time.Millisecond) {
				first++
			}
			got.Burst = max(got.Burst, i-first+1)
		}
	}()
	interval, err := time.ParseDuration(os.Getenv("SAMPLER_INTERVAL"))
	if err != nil {
		interval = time.Millisecond
	}
	if got.Stats, err = s.Run(ctx, sampler.Config{Interval: interval, NoJitter: true}, q); err != nil {
		t.Fatal(err)
	}
	<-consumed
	json.NewEncoder(os.Stdout).Encode(got)
}

// startHelper starts a process that samples pid, and waits for its first samples.
func startHelper(t testing.TB, pid int, env ...string) *ctest.Program {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestHelperSampler$")
	cmd.Env = append(append(os.Environ(), "SAMPLER_RUN="+strconv.Itoa(pid)), env...)
	// a job of its own, as a shell makes it: otherwise Ctrl-Z does nothing
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p := ctest.StartCommand(t, cmd)
	unix.Setpriority(unix.PRIO_PROCESS, p.PID, -19) // with this priority the process is soon done, if that is permitted
	if p.Line(t) != "begun" {
		t.Fatal("the helper did not begin")
	}
	return p
}

func endHelper(t testing.TB, p *ctest.Program) (got helperRun) {
	t.Helper()
	p.Process.Signal(unix.SIGTERM)
	line := p.Line(t)
	for strings.HasPrefix(line, "goes on") { // the whole machine may have been suspended, too
		line = p.Line(t)
	}
	if err := json.Unmarshal([]byte(line), &got); err != nil {
		t.Fatal(err)
	}
	p.Wait()
	return got
}

// awaitSamples waits until the helper goes on after a gap. The gap has ended after since.
func awaitSamples(t testing.TB, p *ctest.Program, since int64) {
	t.Helper()
	defer time.AfterFunc(2*time.Minute, func() { p.Process.Kill() }).Stop()
	for when := int64(0); when < since; {
		fmt.Sscanf(p.Line(t), "goes on %d", &when)
	}
}

// onOneCPU makes programs that start from here run on one CPU. back ends that.
func onOneCPU(t testing.TB) (back func()) {
	t.Helper()
	runtime.LockOSThread()
	var before unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		t.Fatal(err)
	}
	one := ctest.AnyCPU(t)
	if err := unix.SchedSetaffinity(0, &one); err != nil {
		t.Fatal(err)
	}
	return func() {
		unix.SchedSetaffinity(0, &before)
		runtime.UnlockOSThread()
	}
}

// A sampling process was stopped for a time. It does not catch up, assigns that time to no thread, and reports the gap.
func TestNothingIsCaughtUpWith(t *testing.T) {
	const away = 1500 * time.Millisecond
	type stop struct {
		name   string
		sig    unix.Signal
		oneCPU bool // then no CPU can be visited
	}
	for _, c := range jvmtest.Drawn(t, 2, []stop{{"SIGSTOP", unix.SIGSTOP, false}, {"SIGTSTP", unix.SIGTSTP, false},
		{"SIGTSTP, one CPU", unix.SIGTSTP, true}}) {
		t.Run(c.name, func(t *testing.T) {
			p := ctest.Run(t, ctest.Spin)
			p.Number(t)
			back := func() {}
			if c.oneCPU {
				back = onOneCPU(t)
			}
			h := startHelper(t, p.PID)
			back()
			time.Sleep(300 * time.Millisecond)
			h.Process.Signal(c.sig)
			ctest.Eventually(t, "goprof is stopped", func() bool { return ctest.State(h.PID, h.PID) == 'T' })
			if c.sig == unix.SIGTSTP {
				if s, by := ctest.State(p.PID, p.PID), ctest.TracerOf(p.PID); s != 'R' || by != 0 {
					t.Errorf("the program is in state %c, traced by %d", s, by)
				}
			}
			before := ctest.Ran(t, p.PID, p.PID)
			time.Sleep(away)
			used := ctest.Ran(t, p.PID, p.PID) - before
			continued := ptrace.Monotonic()
			h.Process.Signal(unix.SIGCONT)
			awaitSamples(t, h, continued)
			time.Sleep(300 * time.Millisecond) // time for a burst, if there is one
			got := endHelper(t, h)
			t.Logf("gap %v, %d ticks skipped of %d, most within 0.1 s %d; %+v",
				got.Stats.Gap, got.Stats.Skipped, got.Stats.Ticks, got.Burst, got.Stats.Times)
			least := int64(away/time.Millisecond) * 9 / 10
			if sampletest.MayMiss() {
				least = 1 // how many ticks a slow CPU would have had is not known
			}
			if got.Stats.Gap < away || got.Stats.Skipped < least {
				t.Error("it does not say that it was away")
			}
			if got.Burst > 100+int(sampletest.Chance(100)) {
				t.Errorf("%d samples of one thread within 0.1 s", got.Burst)
			}
			if times := got.Stats.Times; int64(times.NotSampled) < used*9/10 {
				t.Errorf("%v used in the gap went to samples: %+v", time.Duration(used), times)
			}
		})
	}
}

// TestAwayWithinALook: goprof may be stopped between a visit and the account of that visit. The CPU time that the
// thread uses meanwhile is not the sample's.
func TestAwayWithinALook(t *testing.T) {
	p := ctest.Run(t, sampletest.ManyProgram, "0")
	p.Number(t)
	proc := procfs.OpenDir(p.PID)
	defer proc.Close()
	q := sampler.NewQueue(4)
	r := &run{Run: stops.Run{Proc: proc, Queue: q, Hand: q.Put}, scan: threads.New(proc, 10*time.Millisecond, 10),
		visiting: true}
	defer r.scan.Close()
	r.scan.Begin()
	for th := r.scan.Next(); th != nil; th = r.scan.Next() {
		r.scan.PayForSample(th)
	}
	sampleAfter := func(away int64) time.Duration {
		was := ctest.Ran(t, p.PID, p.PID)
		enough := was + int64(5*time.Millisecond)
		ctest.Eventually(t, "it runs on", func() bool { return ctest.Ran(t, p.PID, p.PID) > enough })
		snap := q.Take()
		snap.TID = p.PID
		r.scan.Now = ptrace.Monotonic() - away
		r.account(snap, ptrace.Taken)
		got := <-q.Looks()
		defer q.Done(got)
		return time.Duration(got.CPU)
	}
	if got := sampleAfter(0); got < 5*time.Millisecond {
		t.Errorf("a sample carries %v of 5 ms or more", got)
	}
	if got := r.scan.Bills.Excused; got != 0 {
		t.Errorf("%d ns are excused without a gap", got)
	}
	if got := sampleAfter(threads.LongGap + int64(time.Second)); r.scan.Bills.Excused < int64(5*time.Millisecond) {
		t.Errorf("after a gap %d ns are excused, the sample carries %v", r.scan.Bills.Excused, got)
	}
}
