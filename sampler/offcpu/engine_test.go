//go:build linux

package offcpu

import (
	"bytes"
	"os"
	"runtime"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"goprof/arch/cpus"
	"goprof/process/procfs"
	"goprof/sampler"
	"goprof/sampler/look"
	"goprof/sampler/ptrace"
	"goprof/testdata/ctest"
)

// offFixture makes a run whose records a test makes.
func offFixture(least time.Duration) *offRun {
	r := &offRun{threads: map[int]*offThread{}, cpu: cpus.Here(), opt: Options{Min: least}, gap: -1,
		seen: make([]int64, 1)}
	r.Queue = sampler.NewQueue(8)
	r.Proc = procfs.OpenDir(os.Getpid())
	r.Tracer = ptrace.NewTracer(os.Getpid(), r.cpu)
	return r
}

// looks returns the times and states of the looks that the run has handed over.
func (r *offRun) looks() (times []time.Duration, states []look.Waiting) {
	for {
		select {
		case snap := <-r.Queue.Looks():
			_, d := snap.Tally.Count()
			times, states = append(times, d), append(states, snap.Waiting)
			r.Queue.Done(snap)
		default:
			return times, states
		}
	}
}

// TestOffCPURecords: each wait is reported once, with its own time. Records may come twice or be missing.
func TestOffCPURecords(t *testing.T) {
	const ms = int64(time.Millisecond)
	stack := func(when int64) offRecord {
		return offRecord{when: when, tid: 7, kind: offStackOf, copy: offCopy{when: when, has: true, stack: make([]byte, 64)}}
	}
	rec := func(when int64, kind offKind) offRecord { return offRecord{when: when, tid: 7, kind: kind} }
	for _, c := range []struct {
		name    string
		least   time.Duration
		records []offRecord
		want    []time.Duration
		ready   bool
		short   int64
	}{
		{name: "one wait", records: []offRecord{stack(10 * ms), rec(10*ms+1, offOut), rec(30*ms+1, offIn)},
			want: []time.Duration{20 * time.Millisecond}},
		{name: "its CPU was taken", records: []offRecord{stack(10 * ms), rec(10*ms+1, offOutReady), rec(30*ms+1, offIn)},
			want: []time.Duration{20 * time.Millisecond}, ready: true},
		{name: "noted twice", records: []offRecord{stack(10 * ms), stack(10 * ms), rec(10*ms+1, offOut), rec(10*ms+2, offOut),
			rec(30*ms+1, offIn), rec(30*ms+2, offIn)}, want: []time.Duration{20 * time.Millisecond}},
		{name: "began before", records: []offRecord{rec(30*ms, offIn)}},
		{name: "too short", least: time.Second, records: []offRecord{stack(10 * ms), rec(10*ms+1, offOut), rec(30*ms, offIn)},
			short: 1},
		{name: "the host of a virtual machine took the CPU between stack and switch", records: []offRecord{rec(1*ms, offIn),
			stack(5 * ms), rec(10*ms, offOut), rec(30*ms, offIn)}, want: []time.Duration{20 * time.Millisecond}},
		{name: "it ran between stack and switch", records: []offRecord{stack(5 * ms), rec(6*ms, offIn), rec(6*ms+1, offOut),
			rec(30*ms, offIn)}},
		{name: "the stack is of another switch", records: []offRecord{stack(5 * ms), rec(10*ms, offOut), rec(30*ms, offIn)}},
	} {
		r := offFixture(c.least)
		for i := range c.records {
			r.work(&c.records[i])
		}
		got, states := r.looks()
		if len(got) != len(c.want) || len(got) > 0 && (got[0] != c.want[0] || states[0].NoCPU != c.ready) {
			t.Errorf("%s: %v %+v", c.name, got, states)
		}
		if r.counts.Short != c.short {
			t.Errorf("%s: %d short", c.name, r.counts.Short)
		}
		r.Tracer.Close()
		r.Proc.Close()
	}
}

// TestOffCPUDropped: records are missing. A wait counts up to that moment. Time during the loss does not count, and the
// account says how long the loss was. A thread that waits afterwards is found again.
func TestOffCPUDropped(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	const ms = int64(time.Millisecond)
	r := offFixture(0)
	defer r.Tracer.Close()
	defer r.Proc.Close()
	var ends [2]int
	if err := unix.Pipe(ends[:]); err != nil {
		t.Fatal(err)
	}
	defer unix.Close(ends[0])
	defer unix.Close(ends[1])
	defer unix.Write(ends[1], []byte{1})
	started := make(chan int)
	go func() {
		runtime.LockOSThread()
		started <- unix.Gettid()
		unix.Read(ends[0], make([]byte, 1))
	}()
	sleeper := <-started
	ctest.Eventually(t, "it sleeps", func() bool { return ctest.State(os.Getpid(), sleeper) == 'S' })
	r.threads[sleeper] = &offThread{tid: sleeper}
	add := func(when int64, kind offKind) {
		r.see(when)
		r.records = append(r.records, offRecord{when: when, tid: 7, kind: kind,
			copy: offCopy{when: when, has: true, owned: true, stack: make([]byte, 64)}})
	}
	add(10*ms, offStackOf)
	add(10*ms, offOut)
	r.see(15 * ms)
	r.Lose(ptrace.RingFull, 3)
	r.records = append(r.records, offRecord{when: 17 * ms, tid: 7, kind: offIn}, // of another CPU
		offRecord{when: 18 * ms, tid: 7, kind: offOut})
	add(25*ms, offIn)
	add(30*ms, offStackOf)
	add(30*ms, offOut)
	add(40*ms, offIn)
	r.drain(50 * ms)
	r.findWaiting(45 * ms)
	if got, _ := r.looks(); !slices.Equal(got, []time.Duration{5 * time.Millisecond, 10 * time.Millisecond}) {
		t.Errorf("%v", got)
	}
	if r.counts.Dropped != 3 || r.Stats.Lost[ptrace.RingFull] != 3 || r.counts.Missed != 30*time.Millisecond {
		t.Errorf("%+v", r.counts)
	}
	if th := r.threads[sleeper]; th.out != 45*ms {
		t.Errorf("a thread that sleeps waits since %d", th.out)
	}
}

// TestOffCPUCountsLossOnce: the kernel had room for the record of a switch, but not for the stack of its wait.
func TestOffCPUCountsLossOnce(t *testing.T) {
	r := offFixture(0)
	r.lose(1, 5)
	for i := range int64(2) { // the second one has no stack for another reason
		r.work(&offRecord{when: 10 + 20*i, tid: 7, kind: offOut})
		r.work(&offRecord{when: 20 + 20*i, tid: 7, kind: offIn})
	}
	if lost := r.Stats.Lost; lost[ptrace.RingFull] != 1 || lost[ptrace.NoRegisters] != 1 || r.Stats.Attempted != 2 {
		t.Errorf("%d looks, lost: %v", r.Stats.Attempted, lost)
	}
}

// TestOffCPUOlderRecords: goprof has found that a thread waits. A record from before that moment does not end the wait.
func TestOffCPUOlderRecords(t *testing.T) {
	r := offFixture(0)
	r.threads[7] = &offThread{tid: 7, out: 100, counted: 100}
	r.work(&offRecord{when: 90, tid: 7, kind: offIn})
	if th := r.threads[7]; th.out != 100 || r.counts.Short != 0 || r.counts.ShortFor != 0 {
		t.Errorf("%+v, %+v", th, r.counts)
	}
}

// TestOffCPUKeepsStacks: the stack of a switch may come in one reading of the ring, and the switch's record in a
// later one. The stack still belongs to that switch.
func TestOffCPUKeepsStacks(t *testing.T) {
	runtime.LockOSThread() // a Tracer belongs to one OS thread
	defer runtime.UnlockOSThread()
	r := offFixture(0)
	defer r.Tracer.Close()
	defer r.Proc.Close()
	r.arena, _ = newArena(1 << 12)
	defer r.arena.close()
	stack := r.arena.take(8)
	copy(stack, []byte{1, 2, 3, 4, 5, 6, 7, 8})
	r.records = []offRecord{{when: 10, tid: 7, kind: offStackOf, copy: offCopy{when: 10, has: true, stack: stack}}}
	r.drain(20)
	copy(r.arena.take(8), []byte{9, 9, 9, 9, 9, 9, 9, 9})
	r.records = append(r.records, offRecord{when: 30, tid: 7, kind: offOut}, offRecord{when: 40, tid: 7, kind: offIn})
	r.drain(50)
	select {
	case snap := <-r.Queue.Looks():
		if want := []byte{1, 2, 3, 4, 5, 6, 7, 8}; !bytes.Equal(snap.Stack, want) {
			t.Errorf("the stack is %v, not %v", snap.Stack, want)
		}
	default:
		t.Errorf("no wait was told: %+v", r.Stats)
	}
}

// TestOffCPUForgetsTheEnded: a program makes threads all day. The list does not fill with ended ones. A thread that
// lives or waits is kept.
func TestOffCPUForgetsTheEnded(t *testing.T) {
	r := offFixture(0)
	defer r.Tracer.Close()
	defer r.Proc.Close()
	const ended, own = 1 << 23, 3 // no thread has a number above 1 << 22
	for tid := range leastPruned {
		r.threads[ended+tid] = &offThread{tid: ended + tid}
	}
	r.threads[ended+own].out = 1
	r.threads[os.Getpid()] = &offThread{tid: os.Getpid()}
	r.prune()
	if len(r.threads) != 2 || r.threads[os.Getpid()] == nil || r.threads[ended+own] == nil {
		t.Errorf("%d threads are known, not 2", len(r.threads))
	}
}

// TestOffCPURepeatsVoidLooks: if the walker has to give up a look, its wait is not lost. The next look counts for the
// whole wait.
func TestOffCPURepeatsVoidLooks(t *testing.T) {
	r := offFixture(0)
	defer r.Tracer.Close()
	defer r.Proc.Close()
	const ms = int64(time.Millisecond)
	th := &offThread{tid: 7, out: 10 * ms, counted: 10 * ms, rest: &look.Charge{Ran: 5, Turns: 2}}
	hold := func() {
		th.snap = r.Queue.Take()
		th.snap.Waiting.Unstopped = true
		r.held++
	}
	hold()
	r.pass(th, 30*ms)
	first := th.tally
	if _, d := first.Count(); d != 20*time.Millisecond || first.Rest == nil || first.Rest.Ran != 5 {
		t.Fatalf("%v, %+v", d, first.Rest)
	}
	if r.repeatVoid(th, 40*ms); th.tally != first {
		t.Fatal("a good look is repeated")
	}
	first.Void()
	if r.repeatVoid(th, 40*ms); th.tally != nil || th.counted != 10*ms || th.tries != 0 {
		t.Fatalf("%+v", th)
	}
	hold()
	r.pass(th, 50*ms)
	if _, d := th.tally.Count(); d != 40*time.Millisecond {
		t.Errorf("the second look counts for %v", d)
	}
	th.tally.Void()
	if r.repeatVoid(th, 49*ms); th.tally == nil {
		t.Error("repeated too soon")
	}
	r.finish(th, 60*ms)
	if th.out != 0 || r.counts.Waits != 1 {
		t.Errorf("%+v, %+v", th, r.counts)
	}
}

// TestMarksTaken: the version shows on which kernels records do not say that a thread lost its CPU.
func TestMarksTaken(t *testing.T) {
	for release, want := range map[string]bool{"4.14.336-257.562.amzn2.x86_64": false, "4.17.0": true,
		"3.10.0-1160":           false,
		"4.18.0-553.el8.x86_64": true, "5.10.0-32-amd64": true, "6.18.44": true, "": true,
	} {
		if got := marksTaken(release); got != want {
			t.Errorf("%q: %t", release, got)
		}
	}
	if !marksTaken(kernelRelease()) {
		t.Errorf("%q", kernelRelease())
	}
}
