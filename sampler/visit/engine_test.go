//go:build linux

package visit

import (
	"context"
	"errors"
	"math"
	"os"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"goprof/sampler"
	"goprof/sampler/look"
	"goprof/sampler/ptrace"
	"goprof/testdata/ctest"
	"goprof/testdata/sampletest"
)

// session samples pid until end returns.
func session(t *testing.T, pid int, cfg sampler.Config, queue int, end func(seen *atomic.Int64)) sampletest.Result {
	t.Helper()
	return sampletest.Session(t, New(pid, ctest.CPU()), cfg, queue, func(snap *look.Look) {
		if len(snap.Stack) == 0 || snap.SP == 0 {
			t.Error("a snapshot without stack")
		}
	}, end)
}

func TestSamplesFollowCPUTime(t *testing.T) {
	interval := sampletest.Interval(2 * time.Millisecond)
	p := ctest.Run(t, ctest.Shares, "1", "1", "0", "1", "5000", "10000", "1", "3000", "15000", "30", "200", "20000")
	tids := make([]int, 33)
	for i := range tids {
		tids[i] = p.Number(t)
	}
	before := make(map[int]int64)
	for _, tid := range tids {
		before[tid] = ctest.Ran(t, p.PID, tid)
	}
	got := session(t, p.PID, sampler.Config{Interval: interval}, 64,
		sampletest.UntilSamples(int64(ctest.Rounds(4000))))
	used := make(map[int]int64)
	var usedAll int64
	for _, tid := range tids {
		used[tid] = ctest.Ran(t, p.PID, tid) - before[tid]
		usedAll += used[tid]
	}
	judged := got.Skipped <= got.Ticks/4
	check := func(name string, tids ...int) {
		var samples int
		var ns int64
		for _, tid := range tids {
			samples += got.ByTID[tid]
			ns += used[tid]
		}
		if owed := ns/int64(interval) + int64(len(tids)*12); int64(samples) > owed+sampletest.Chance(owed) {
			t.Errorf("%s: %d samples of %d owed", name, samples, owed)
		}
		want := float64(got.Taken) * float64(ns) / float64(usedAll)
		t.Logf("%s: %d samples, %.0f by CPU time (%.0f owed)", name, samples, want, float64(ns)/float64(interval))
		// A thread that had a CPU while goprof had none is owed more samples than it got.
		if judged && (float64(samples) < 0.75*want-20-float64(got.Skipped) || float64(samples) > 1.25*want+20) {
			t.Errorf("%s: %d samples, %.0f by CPU time", name, samples, want)
		}
	}
	// The threads print their tids in any order. Their CPU times show which is which.
	var bursts []int
	for _, tid := range tids {
		if used[tid] < usedAll/20 {
			bursts = append(bursts, tid)
		} else {
			check("thread "+strconv.Itoa(tid), tid)
		}
	}
	check(strconv.Itoa(len(bursts))+" threads with short bursts", bursts...)
	t.Logf("ticks %d, skipped %d, lost %v, pauses p50 %v p99 %v max %v, CPU %v of %v",
		got.Ticks, got.Skipped, got.Lost, got.Pauses.Quantile(.5), got.Pauses.Quantile(.99), got.Pauses.Max(),
		got.CPU, got.Wall)
	sampletest.NeedTicks(t, &got.Stats)
}

// There are more runnable threads than CPUs: all threads are in state R all the time, but each has only a share of a
// CPU.
func TestSamplesWhenCPUsAreShort(t *testing.T) {
	p := ctest.Run(t, ctest.Shares, "12", "1", "0")
	tids := make([]int, 12)
	before := make(map[int]int64)
	for i := range tids {
		tids[i] = p.Number(t)
	}
	for _, tid := range tids {
		before[tid] = ctest.Ran(t, p.PID, tid)
	}
	interval := sampletest.Interval(time.Millisecond)
	got := session(t, p.PID, sampler.Config{Interval: interval}, 256, sampletest.UntilSamples(int64(ctest.Rounds(4000))))
	var used int64
	for _, tid := range tids {
		used += ctest.Ran(t, p.PID, tid) - before[tid]
	}
	owed := used / int64(interval)
	if got.Attempted > owed+int64(len(tids)*12)+sampletest.Chance(owed) {
		t.Errorf("%d samples, and the CPU time has %d intervals", got.Attempted, owed)
	}
	// Looks that were lost because the test had no CPU to empty the queue do not count.
	lost := got.LostSum() - got.Lost[ptrace.QueueFull]
	if sampletest.MayMiss() {
		lost -= got.Lost[ptrace.Missed] // the sampling thread had none
	}
	if lost*100 > got.Attempted {
		t.Errorf("lost %v of %d", got.Lost, got.Attempted)
	}
	t.Logf("%d of %d owed, lost %v, pauses p50 %v p99 %v max %v, skipped %d of %d", got.Taken, owed, got.Lost,
		got.Pauses.Quantile(.5), got.Pauses.Quantile(.99), got.Pauses.Max(), got.Skipped, got.Ticks)
	for _, tid := range tids {
		ctest.Eventually(t, "runs on", func() bool { return ctest.State(p.PID, tid) == 'R' })
	}
}

func TestTargetThatEndsIsANormalEnd(t *testing.T) {
	t.Run("noted", func(t *testing.T) { endsNormally(t, false) })
	t.Run("asked", func(t *testing.T) { endsNormally(t, true) })
}

func endsNormally(t *testing.T, noNotes bool) {
	p := ctest.Run(t, ctest.Spin)
	got := session(t, p.PID, sampler.Config{Interval: time.Millisecond, NoNotes: noNotes}, 8, func(seen *atomic.Int64) {
		sampletest.UntilSamples(20)(seen)
		p.Process.Kill()
		p.Wait()
		time.Sleep(time.Minute) // Run finds out by itself that the process has ended
	})
	if got.Err != nil || !got.Ended {
		t.Errorf("error %v, ended %v", got.Err, got.Ended)
	}
}

func TestRunOnNobody(t *testing.T) {
	_, err := New(1<<22, ctest.CPU()).Run(context.Background(), sampler.Config{Interval: time.Second}, sampler.NewQueue(1))
	if !errors.Is(err, sampler.ErrNoProcess) {
		t.Errorf("%v", err)
	}
	_, err = New(os.Getpid(), ctest.CPU()).Run(context.Background(), sampler.Config{Interval: 1}, sampler.NewQueue(1))
	if !errors.Is(err, sampler.ErrInterval) {
		t.Errorf("%v", err)
	}
}

func TestChurnInASession(t *testing.T) {
	p := ctest.Run(t, ctest.Churn)
	got := session(t, p.PID, sampler.Config{Interval: 100 * time.Microsecond}, 64,
		sampletest.UntilSamples(int64(ctest.Rounds(2000))))
	t.Logf("attempted %d, taken %d, lost %v", got.Attempted, got.Taken, got.Lost)
	p.In.Write([]byte("x"))
	p.Line(t)
	if err := p.Wait(); err != nil {
		t.Error(err)
	}
}

// A walker that keeps all looks costs samples, and nothing else. The lost samples are counted.
func TestWalkerThatIsBehind(t *testing.T) {
	p := ctest.Run(t, ctest.Spin)
	s := New(p.PID, ctest.CPU())
	q := sampler.NewQueue(4)
	ctx, cancel := context.WithCancel(context.Background())
	var held []*look.Look
	go func() {
		defer cancel()
		for range 4 {
			held = append(held, <-q.Looks())
		}
		ctest.Eventually(t, "samples are lost", func() bool { return s.Stats().Lost[ptrace.QueueFull] > 0 })
	}()
	got, err := s.Run(ctx, sampler.Config{Interval: time.Millisecond}, q)
	if err != nil || got.Taken != 4 || got.Lost[ptrace.QueueFull] == 0 || got.Attempted != 4+got.LostSum() {
		t.Errorf("%v, taken %d, attempted %d, lost %v", err, got.Taken, got.Attempted, got.Lost)
	}
}

// A debugger holds one thread. Looks at that thread are lost under that name, and the session goes on.
func TestSessionBesideADebugger(t *testing.T) {
	p := ctest.Run(t, ctest.Shares, "2", "1", "0")
	traced, free := p.Number(t), p.Number(t)
	ctest.Run(t, ctest.Seizes, strconv.Itoa(traced))
	got := session(t, p.PID, sampler.Config{Interval: time.Millisecond}, 8, sampletest.UntilSamples(200))
	if got.Lost[ptrace.AlreadyTraced] == 0 || got.ByTID[traced] != 0 || got.ByTID[free] < 200 {
		t.Errorf("lost %v, samples %v", got.Lost, got.ByTID)
	}
}

// Once a thread is to be skipped, goprof leaves it alone, and its CPU time does not count.
func TestSkippedThreads(t *testing.T) {
	p := ctest.Run(t, ctest.Shares, "2", "1", "0")
	want, other := p.Number(t), p.Number(t)
	s, q := New(p.PID, ctest.CPU()), sampler.NewQueue(8)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	wanted, late := 0, 0
	consumed := make(chan struct{})
	go func() {
		defer close(consumed)
		for snap := range q.Looks() {
			if snap.TID == want {
				wanted++
			} else if wanted > 100 {
				late++ // by then the hint was given many times
			}
			s.Advise(other, ptrace.Hint{Skip: true})
			if q.Done(snap); wanted == 300 {
				cancel()
			}
		}
	}()
	before := ctest.Ran(t, p.PID, want)
	got, err := s.Run(ctx, sampler.Config{Interval: time.Millisecond}, q)
	<-consumed
	used := time.Duration(ctest.Ran(t, p.PID, want) - before)
	if late > 20 { // without the hint there would be 200; some looks had already begun
		t.Errorf("%d samples of %d, which was to be skipped", late, other)
	}
	if err != nil || got.Times.Process > used*11/10+50*time.Millisecond {
		t.Errorf("%v: %v used, with a thread that was to be skipped; the other one used %v", err, got.Times.Process, used)
	}
}

// If the top of the stack is known, the copy ends there.
func TestStackTopHints(t *testing.T) {
	p := ctest.Run(t, ctest.Spin)
	top := uint64(p.Number(t)) + 16384
	s := New(p.PID, ctest.CPU())
	q := sampler.NewQueue(4)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	exact := false
	done := make(chan struct{})
	go func() {
		defer close(done)
		n := 0
		for snap := range q.Looks() {
			exact = exact || snap.SP+uint64(len(snap.Stack)) == top
			s.Advise(p.PID, ptrace.Hint{StackTop: top})
			if n++; exact || n > 1000 {
				cancel()
			}
			q.Done(snap)
		}
	}()
	if _, err := s.Run(ctx, sampler.Config{Interval: time.Millisecond}, q); err != nil {
		t.Fatal(err)
	}
	<-done
	if !exact {
		t.Error("no copy ended at the top that was told")
	}
}

// TestPools: the threads of a pool work a little each, like those that serve requests. Together they have as many
// samples as their CPU time is worth, and the samples carry nearly all of it.
func TestPools(t *testing.T) {
	sampletest.Proof(t)
	t.Run("noted", func(t *testing.T) { poolsRun(t, false) })
	t.Run("asked", func(t *testing.T) { poolsRun(t, true) })
}

func poolsRun(t *testing.T, noNotes bool) {
	const interval = 5 * time.Millisecond
	p := ctest.Run(t, ctest.Shares, "200", "133", "150000", "200", "67", "150000")
	tids := make([]int, 400)
	for i := range tids {
		tids[i] = p.Number(t)
	}
	before := make(map[int]int64)
	for _, tid := range tids {
		before[tid] = ctest.Ran(t, p.PID, tid)
	}
	got := session(t, p.PID, sampler.Config{Interval: interval, NoNotes: noNotes}, 64, sampletest.UntilSamples(500))
	var used, usedMuch, much, all int64
	mean := int64(0)
	for _, tid := range tids {
		used += ctest.Ran(t, p.PID, tid) - before[tid]
	}
	mean = used / int64(len(tids))
	for _, tid := range tids {
		ns := ctest.Ran(t, p.PID, tid) - before[tid]
		all += int64(got.ByTID[tid])
		if ns > mean { // a thread of the pool that does twice as much
			usedMuch += ns
			much += int64(got.ByTID[tid])
		}
	}
	owed := used / int64(interval)
	sampled := float64(got.Times.Sampled) / float64(got.Times.Process)
	t.Logf("%d samples of %d owed; the busier pool has %.3f of the time and %.3f of the samples; %.1f %% of the time is "+
		"sampled; skipped %d of %d ticks; %.1f %% of a CPU",
		all, owed, float64(usedMuch)/float64(used), float64(much)/float64(all), 100*sampled, got.Skipped, got.Ticks,
		100*got.CPU.Seconds()/got.Wall.Seconds())
	sampletest.NeedTicks(t, &got.Stats)
	if truth := float64(usedMuch) / float64(used); math.Abs(truth-busierPool) > 0.05 {
		t.Skipf("not judged: the kernel charges the busier pool with %.3f of the time, and the program gives it %.2f: "+
			"what a hypervisor takes from a CPU is charged to who runs there", truth, busierPool)
	}
	lean := owed / 10
	if noNotes {
		lean = owed * 3 / 10 // a thread that has moved before goprof asks for it is missed (docs/decisions/0004)
	}
	if all > owed+owed/10+sampletest.Chance(owed) || all < held(owed, &got.Stats)-lean-sampletest.Chance(owed) {
		t.Errorf("%d samples of %d owed", all, owed)
	}
	share := float64(usedMuch) / float64(used)
	seen, most := float64(much)/float64(all), share
	if noNotes {
		most = shareOfLonger(share, float64(all)/(float64(owed)*float64(got.Ticks)/float64(got.Ticks+got.Skipped)))
	}
	if off := 4 * math.Sqrt(share*(1-share)/float64(all)); seen < share-off || seen > most+off {
		t.Errorf("the busier pool has %.3f of the time and %.3f of the samples, which should be that, or %.3f at most",
			share, seen, most)
	}
	if sampled < 0.95 && got.Visits {
		t.Errorf("%.1f %% of the CPU time is sampled", 100*sampled)
	}
}

// busierPool is the share of the program's time that belongs to the pool with twice the work. The kernel charged
// this pool with 0.64 to 0.66 in 16 logged runs. In two other runs, in which the machine gave goprof no CPU at one
// of eight ticks, it was 0.51 and 0.56.
const busierPool = 0.65

// shareOfLonger returns the share of samples that threads with this share of the time get, if only the part met of the
// owed samples is taken. It supposes that visits miss the other threads, which run half as long at a time, twice as
// often, because they have more often moved before goprof asks for them. No run showed more than that. In seven runs
// the share was 0.61 to 0.74, and 0.65 is true.
func shareOfLonger(share, met float64) float64 {
	if met >= 1 {
		return share
	}
	missed := (1 - met) / (2 - share) // share*missed + (1-share)*2*missed = 1-met
	return share * (1 - missed) / met
}

// shortLives is a program of short threads, some 250 in a second. Each uses 2 ms of CPU time in 20 ms, and ends.
const shortLives = `
static void *life(void *x) {
	for (int i = 0; i < 4; i++) {
		long end = cpu_ns() + 500000;
		while (cpu_ns() < end) for (volatile int k = 0; k < 200; k++);
		usleep(4500);
	}
	return 0;
}
int main(void) {
	pthread_attr_t a;
	pthread_attr_init(&a);
	pthread_attr_setstacksize(&a, 65536);
	pthread_attr_setdetachstate(&a, PTHREAD_CREATE_DETACHED);
	ready();
	for (;;) { pthread_t t; pthread_create(&t, &a, life, 0); usleep(4000); }
}`

// TestShortLives: threads that live 20 ms have as many samples as their CPU time is worth.
func TestShortLives(t *testing.T) {
	sampletest.Proof(t)
	const interval = 2 * time.Millisecond
	p := ctest.Run(t, shortLives)
	got := session(t, p.PID, sampler.Config{Interval: interval}, 64, sampletest.UntilSamples(800))
	owed := int64(got.Times.Process / interval)
	t.Logf("%d samples of %d owed; %+v; lost %v; skipped %d of %d ticks", got.Attempted, owed, got.Times, got.Lost,
		got.Skipped, got.Ticks)
	sampletest.NeedTicks(t, &got.Stats)
	if n := got.Attempted; got.Visits && (n > owed+owed/10+sampletest.Chance(owed) ||
		n < held(owed, &got.Stats)-owed/10-sampletest.Chance(owed)) {
		t.Errorf("%d samples of %d owed", got.Attempted, owed)
	}
}
