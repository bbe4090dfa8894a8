//go:build linux

package perf

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"goprof/process/procfs"
	"goprof/sampler"
	"goprof/sampler/cpuset"
	"goprof/sampler/look"
	"goprof/sampler/ptrace"
	"goprof/sampler/ring"
	"goprof/sampler/threads"
	"goprof/testdata/ctest"
	"goprof/testdata/sampletest"
)

// needPerf skips a test if perf_event may not be used, as in most containers.
func needPerf(t testing.TB) {
	t.Helper()
	ctest.NeedCPU(t)
	if power, err := ring.Try(0); err != nil {
		t.Skipf("this machine does not permit perf_event: %v", err)
	} else if !power.Kernel {
		t.Skip("perf_event is permitted here outside of the kernel only (kernel.perf_event_paranoid, CAP_PERFMON)")
	}
}

// perfSession samples pid until end returns. each is called with every look.
func perfSession(t *testing.T, pid int, cfg sampler.Config, each func(*look.Look),
	end func(p *Engine, seen *atomic.Int64)) sampletest.Result {
	t.Helper()
	needWide(t)
	if each == nil {
		each = func(*look.Look) {}
	}
	p := New(pid, ctest.CPU())
	before := standardFiles()
	got := sampletest.Session(t, p, cfg, 64, each, func(seen *atomic.Int64) { end(p, seen) })
	if got.Err != nil {
		t.Fatal(got.Err)
	}
	if after := standardFiles(); after != before {
		t.Errorf("standard files before %v, after %v", before, after)
	}
	return got
}

// standardFiles returns what the standard descriptors lead to. No test may close these descriptors.
func standardFiles() (links [3]string) {
	for fd := range links {
		links[fd], _ = os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
	}
	return links
}

func perfUntil(n int64) func(*Engine, *atomic.Int64) {
	return func(_ *Engine, seen *atomic.Int64) { sampletest.UntilSamples(n)(seen) }
}

// TestPerfSeesWhatIsThere: registers and stack are those of one moment. The program counts, and writes the count to
// its stack in three places. These must agree, or differ by the one step that lies between.
func TestPerfSeesWhatIsThere(t *testing.T) {
	p := ctest.Run(t, `
int main(void) {
	volatile uint64_t pad[2048];
	for (int i = 0; i < 2048; i++) pad[i] = 0x5a5a5a5a00000000 + i;
	ready();
	say((long)(uintptr_t)pad);
	for (uint64_t n = 1;; n++) {
		pad[0] = n;
		pad[1] = n;
		pad[1024] = n;
	}
}`)
	pad := uint64(p.Number(t))
	// by the time of the sample: each CPU has a ring of its own, so samples come in any order
	counts := map[int64]uint64{}
	got := perfSession(t, p.PID, sampler.Config{Interval: time.Millisecond}, func(s *look.Look) {
		if s.SP != s.Regs[ctest.CPU().SP] || s.Unknown != 0 || s.Syscall != -1 || len(s.Side) != 0 || !s.RunsOn ||
			len(s.Followed) != 0 {
			t.Errorf("%#x, sp %#x, unknown %#x, call %d", s.SP, s.Regs[ctest.CPU().SP], s.Unknown, s.Syscall)
		}
		word := func(i uint64) uint64 {
			if at := pad + 8*i - s.SP; at+8 <= uint64(len(s.Stack)) {
				return binary.LittleEndian.Uint64(s.Stack[at:])
			}
			t.Fatalf("%d bytes of stack from %#x have no word %d of %#x", len(s.Stack), s.SP, i, pad)
			return 0
		}
		a, b, c := word(0), word(1), word(1024)
		if a < b || b < c || a-c > 1 {
			t.Errorf("%d, %d, %d: no state that the program was in", a, b, c)
		}
		counts[s.When] = a
		for i := uint64(2); i < 1024; i++ {
			if word(i) != 0x5a5a5a5a00000000+i {
				t.Fatalf("word %d is %#x", i, word(i))
			}
		}
	}, perfUntil(300))
	last := uint64(0)
	for _, when := range slices.Sorted(maps.Keys(counts)) {
		if counts[when] < last {
			t.Errorf("at %d the program had counted to %d, and to %d before", when, counts[when], last)
		}
		last = counts[when]
	}
	if len(counts) < 300 {
		t.Errorf("%d moments", len(counts))
	}
	t.Logf("%d taken, lost %v, rate %.1f Hz, %+v", got.Taken, got.Lost, got.Rate(), got.Times)
}

// longestPerf is the most CPU time that a sample may carry if one comes each millisecond. More is due to a moment at
// which the machine stood still: the kernel charges the thread with that time, and the thread's timer fires once.
const longestPerf = int64(50 * time.Millisecond)

// TestPerfShares: the samples of each thread follow the CPU time that it used, whether it runs all the time or in
// bursts.
func TestPerfShares(t *testing.T) {
	cfg := sampler.Config{Interval: time.Millisecond}
	// One thread never rests, ten run for 1 ms in 20, a hundred for 0.2 ms in 20.
	p := ctest.Run(t, ctest.Shares, "1", "1", "0", "10", "1000", "20000", "100", "200", "20000")
	var tids []int
	for range 111 {
		tids = append(tids, p.Number(t))
	}
	time.Sleep(100 * time.Millisecond)
	time0 := make([]uint64, len(tids))
	proc := procfs.OpenDir(p.PID)
	defer proc.Close()
	ran := func(tid int) uint64 {
		stat, _ := procfs.ParseSchedstat(proc.Read(tid, "schedstat"))
		return stat.Ran
	}
	for i, tid := range tids {
		time0[i] = ran(tid)
	}
	stood := map[int]int64{}
	got := perfSession(t, p.PID, cfg, func(s *look.Look) {
		stood[s.TID] += max(s.CPU-longestPerf, 0)
	}, perfUntil(4000))
	all, truth, seen := 0.0, [3]float64{}, [3]float64{}
	for i, tid := range tids {
		group := 2
		if i == 0 {
			group = 0
		} else if i <= 10 {
			group = 1
		}
		d := float64(int64(ran(tid)-time0[i]) - stood[tid])
		all += d
		truth[group] += d
		seen[group] += float64(got.ByTID[tid])
	}
	t.Logf("rate %.1f Hz, lost %v", got.Rate(), got.Lost)
	for g := range truth {
		want, have := truth[g]/all, seen[g]/float64(got.Taken)
		t.Logf("group %d: %.2f %% of the time, %.2f %% of %d samples", g, 100*want, 100*have, got.Taken)
		// Allowed are three times the deviation of independent samples, and a little for CPU time from before and after
		// the run.
		if off := have - want; off*off > 9*want*(1-want)/float64(got.Taken)+0.0004 {
			t.Errorf("group %d has %.2f %% of the time and %.2f %% of the samples", g, 100*want, 100*have)
		}
	}
}

// lockstepProgram does two things in turn in each interval of its CPU time, one of them for a tenth of the interval.
// A word of its stack says which one.
const lockstepProgram = `
int main(int argc, char **argv) {
	volatile long doing[2] = {0, 0x1234567887654321};
	long period = atol(argv[1]);
	ready();
	say((long)(uintptr_t)doing);
	long next = cpu_ns();
	for (;;) {
		doing[0] = 1;
		while (cpu_ns() < next + period / 10) for (volatile int i = 0; i < 20; i++);
		doing[0] = 2;
		while (cpu_ns() < next + period) for (volatile int i = 0; i < 20; i++);
		next += period;
	}
}`

// TestPerfIsNotInStep: the period of a program is exactly that of the samples. Its shares come out like those of any
// other program.
func TestPerfIsNotInStep(t *testing.T) {
	sampletest.Proof(t)
	cfg := sampler.Config{Interval: time.Millisecond}
	const period = 2 * time.Millisecond
	p := ctest.Run(t, lockstepProgram, strconv.Itoa(int(period)))
	at := uint64(p.Number(t))
	var first, all int
	cfg.Interval = period
	got := perfSession(t, p.PID, cfg, func(s *look.Look) {
		if off := at - s.SP; off+8 <= uint64(len(s.Stack)) {
			all++
			if s.Stack[off] == 1 {
				first++
			}
		}
	}, perfUntil(2000))
	share := float64(first) / float64(all)
	t.Logf("%d of %d samples in a tenth of the period (%.1f %%), rate %.1f Hz", first, all, 100*share, got.Rate())
	// Neighbouring samples are alike, so this is no binomial distribution: 16 samples count as one.
	if share < 0.04 || share > 0.18 {
		t.Errorf("%.1f %% of the samples are in a tenth of the period", 100*share)
	}
}

// TestPerfTimesAddUp is TestTimesAddUp for this engine.
func TestPerfTimesAddUp(t *testing.T) {
	cfg := sampler.Config{Interval: time.Millisecond}
	p := ctest.Run(t, sampletest.TimesProgram)
	time.Sleep(100 * time.Millisecond)
	sum := int64(0)
	all, _, _ := sampletest.Used(t, p)
	began := time.Now()
	cfg.Interval *= 2
	got := perfSession(t, p.PID, cfg, func(s *look.Look) { sum += s.CPU }, perfUntil(1000))
	allAfter, _, _ := sampletest.Used(t, p)
	beside := time.Since(began) - got.Wall
	times := got.Times
	t.Logf("%+v; the program: %v; lost %v", times, time.Duration(allAfter-all), got.Lost)
	if sum != int64(times.Sampled) || times.Process != times.Sampled+times.NotSampled+times.Exited {
		t.Errorf("samples carry %d: %+v", sum, times)
	}
	most := times.Process / 50
	off := time.Duration(allAfter-all) - times.Process
	if off > most+beside*time.Duration(len(cpuset.Online())) || -off > most {
		t.Errorf("%v, and the program used %v", times.Process, time.Duration(allAfter-all))
	}
	if times.NotSampled > times.Process/4 && os.Getenv("GOPROF_SLOW") == "" { // a slow machine cannot take all samples
		t.Errorf("%v of %v are not sampled", times.NotSampled, times.Process)
	}
}

// deepProgram uses the given amount of stack, in a thread of its own.
const deepProgram = `
static long size;
static void *work(void *x) {
	volatile char *pad = alloca(size);
	for (long i = 0; i < size; i++) pad[i] = 0x5a;
	say(gettid_());
	say((long)(uintptr_t)__builtin_frame_address(0));
	for (volatile long i = 0;; i++) pad[i & 1023] = 0x5a;
}
int main(int argc, char **argv) {
	size = atol(argv[1]);
	ready();
	pthread_t t;
	pthread_create(&t, 0, work, 0);
	for (;;) pause();
}`

// TestPerfStackSizes: the copy of a stack over 64 KB is cut, and says so. Of a short stack, less is copied soon.
func TestPerfStackSizes(t *testing.T) {
	cfg := sampler.Config{Interval: time.Millisecond}
	for _, c := range []struct {
		size int
		cut  bool
	}{{1000, false}, {20_000, false}, {200_000, true}} {
		p := ctest.Run(t, "#include <alloca.h>\n"+deepProgram, strconv.Itoa(c.size))
		tid, frame := p.Number(t), uint64(p.Number(t))
		top := frame + 64
		var last, most, cuts, inRow int
		var fit atomic.Int64 // the most samples in a row with a copy of the right length
		low, high := c.size, c.size+4096
		if c.cut {
			low, high = 60_000, ring.MostStack
		}
		told := false // whether goprof knows by now how long the stack is
		perfSession(t, p.PID, cfg, func(s *look.Look) {
			last, most = len(s.Stack), max(most, len(s.Stack))
			if told = told || !s.Cut || c.cut; s.Cut && told {
				cuts++
			}
			if inRow++; last < low || last > high {
				inRow = 0
			}
			fit.Store(max(fit.Load(), int64(inRow)))
		}, func(p *Engine, seen *atomic.Int64) {
			sampletest.UntilSamples(20)(seen)
			p.Advise(tid, ptrace.Hint{StackTop: top, StackLow: top - 1<<20})
			sampletest.UntilSamples(300)(seen)
			sampletest.UntilSamples(50)(&fit) // if goprof had no CPU for a while, the rings still held larger copies
		})
		t.Logf("%d bytes: %d at last, %d at most, %d cut", c.size, last, most, cuts)
		if most > ring.MostStack || fit.Load() < 50 || c.cut != (cuts > 0) {
			t.Errorf("%d bytes of stack: the last copy has %d, %d were cut", c.size, last, cuts)
		}
	}
}

// Threads that are to be skipped have no events, and their CPU time does not count.
func TestPerfSkips(t *testing.T) {
	p := ctest.Run(t, ctest.Shares, "2", "1", "0")
	wanted, other := p.Number(t), p.Number(t)
	needWide(t)
	after := 0
	var from atomic.Int64 // samples that were taken before the hint may still come
	from.Store(math.MaxInt64)
	n := int64(0)
	perfSession(t, p.PID, sampler.Config{Interval: time.Millisecond}, func(s *look.Look) {
		if n++; n > from.Load() && s.TID == other {
			after++
		}
	}, func(p *Engine, seen *atomic.Int64) {
		sampletest.UntilSamples(20)(seen)
		p.Advise(other, ptrace.Hint{Skip: true})
		p.Stats() // then the run has taken the hint
		time.Sleep(50 * time.Millisecond)
		p.Stats()
		last := seen.Load() + 400
		from.Store(last - 100)
		sampletest.UntilSamples(last)(seen)
	})
	if after > 0 {
		t.Errorf("%d samples of thread %d, which nobody wants beside %d", after, other, wanted)
	}
}

// If the queue is never emptied, samples are lost. All lost ones are counted.
func TestPerfQueueFull(t *testing.T) {
	needWide(t)
	p := ctest.Run(t, ctest.Spin)
	s, q := New(p.PID, ctest.CPU()), sampler.NewQueue(4)
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		ctest.Eventually(t, "samples are lost", func() bool { return s.Stats().Lost[ptrace.QueueFull] > 20 })
		cancel()
	}()
	got, err := s.Run(ctx, sampler.Config{Interval: time.Millisecond}, q)
	if err != nil || got.Taken != 4 || got.Attempted != got.Taken+got.LostSum() {
		t.Errorf("%v, %+v", err, got.Lost)
	}
}

func TestPerfEnds(t *testing.T) {
	p := ctest.Run(t, ctest.Spin)
	got := perfSession(t, p.PID, sampler.Config{Interval: time.Millisecond}, nil, func(_ *Engine, seen *atomic.Int64) {
		sampletest.UntilSamples(5)(seen)
		p.Process.Kill()
		p.Wait()
		time.Sleep(time.Minute)
	})
	if !got.Ended {
		t.Error("the process has ended, and nobody says so")
	}
}

func TestPerfRefusals(t *testing.T) {
	needWide(t)
	for _, c := range []struct {
		cfg  sampler.Config
		pid  int
		want error
	}{
		{sampler.Config{Interval: time.Microsecond}, 1, sampler.ErrInterval},
		{sampler.Config{Interval: time.Second, MaxOverhead: 0.1}, 1, ErrOverhead},
		{sampler.Config{Interval: time.Second}, 1 << 30, sampler.ErrNoProcess},
	} {
		if _, err := New(c.pid, ctest.CPU()).Run(context.Background(), c.cfg, sampler.NewQueue(1)); !errors.Is(err, c.want) {
			t.Errorf("%+v: %v", c.cfg, err)
		}
	}
	if _, err := ring.Try(1 << 30); !errors.Is(err, unix.ESRCH) {
		t.Errorf("no process: %v", err)
	}
}

func openEventsOfOurs(t *testing.T) (n int) {
	dir, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range dir {
		if to, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil && to == "anon_inode:[perf_event]" {
			n++
		}
	}
	return n
}

// TestPerfMovesWithItsThread: a thread with events of its own is moved to other CPUs after goprof has met it. It is
// sampled there, too.
func TestPerfMovesWithItsThread(t *testing.T) {
	if len(cpuset.Online()) < 2 {
		t.Skip("needs two CPUs")
	}
	p := ctest.Run(t, ctest.Spin)
	p.Number(t)
	var one, other unix.CPUSet
	one.Set(cpuset.Online()[0])
	other.Set(cpuset.Online()[1])
	if err := unix.SchedSetaffinity(p.PID, &one); err != nil {
		t.Skipf("this machine lets nobody choose the CPU of a thread: %v", err)
	}
	perfSession(t, p.PID, sampler.Config{Interval: time.Millisecond}, nil, func(pf *Engine, seen *atomic.Int64) {
		pf.Advise(p.PID, ptrace.Hint{Soon: true}) // it has events of its own
		sampletest.UntilSamples(50)(seen)
		if err := unix.SchedSetaffinity(p.PID, &other); err != nil {
			t.Error(err)
		}
		n := seen.Load()
		sampletest.UntilSamples(n + 100)(seen)
		if now := seen.Load(); now < n+100 {
			t.Errorf("%d samples since it was moved", now-n)
		}
	})
}

// TestPerfGone: a thread ends before it has its events. That closes no descriptor of anything else, least of all
// standard input, descriptor 0.
func TestPerfGone(t *testing.T) {
	needWide(t)
	before := standardFiles()
	r := &perfRun{perf: New(os.Getpid(), ctest.CPU()), threads: map[int]*perfThread{}, mostEvents: 100,
		cfg: sampler.Config{Interval: time.Millisecond}, rng: rand.New(rand.NewPCG(1, 2)),
		rings: &perfRings{cpus: cpuset.Online(), prompt: make([]*ring.Ring, len(cpuset.Online()))}}
	const nobody = 1 << 22 // this number is above the kernel's PID_MAX_LIMIT
	for range 3 {
		w := &perfThread{tid: nobody, th: &threads.Thread{TID: nobody}, copies: stackFit{stack: stackLeast}}
		r.threads[nobody] = w
		r.openEvents(w)
		r.unwatch(w)
	}
	if after := standardFiles(); r.events != 0 || len(r.threads) != 0 || r.failed != nil || after != before {
		t.Errorf("%d events, %d threads, %v, standard files %v, then %v", r.events, len(r.threads), r.failed, before, after)
	}
}

func TestPerfMeetsNewThreads(t *testing.T) {
	cfg := sampler.Config{Interval: time.Millisecond}
	p := ctest.Run(t, `
static void *spin(void *x) { say(gettid_()); for (volatile long i = 0;; i++); }
int main(void) {
	ready();
	char line[16];
	pthread_t t;
	while (fgets(line, sizeof line, stdin)) pthread_create(&t, 0, spin, 0);
}`)
	var born, seenBorn atomic.Int64
	perfSession(t, p.PID, cfg, func(s *look.Look) {
		if int64(s.TID) == born.Load() {
			seenBorn.Add(1)
		}
	}, func(pf *Engine, seen *atomic.Int64) {
		pf.Stats()
		for range 3 {
			seenBorn.Store(0)
			p.In.Write([]byte("\n"))
			born.Store(int64(p.Number(t)))
			ctest.Eventually(t, "a new thread is sampled", func() bool { return seenBorn.Load() > 5 })
		}
	})
}
