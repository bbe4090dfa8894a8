//go:build linux

package perf

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"goprof/process/procfs"
	"goprof/sampler"
	"goprof/sampler/look"
	"goprof/sampler/ptrace"
	"goprof/testdata/ctest"
	"goprof/testdata/sampletest"
)

// needWide skips a test if perf may not watch CPUs.
func needWide(t testing.TB) {
	t.Helper()
	ctest.NeedCPU(t)
	if err := TryWide(0); err != nil {
		t.Skipf("this machine does not permit perf events of CPUs with a filter: %v", err)
	}
}

// TestPerfCopiesNothingOfOthers: the kernel writes no sample of another process, however busy that process is.
func TestPerfCopiesNothingOfOthers(t *testing.T) {
	needWide(t)
	busy := ctest.Run(t, ctest.Spin)
	busy.Number(t)
	asleep := ctest.Run(t, `int main(void) { ready(); for (;;) pause(); }`)
	ctest.AwaitAsleep(t, asleep, 0) // the thread has reported that it is ready, and is about to sleep
	heads := func(pid int, enough func(written uint64) bool) (written uint64) {
		r := newPerfRun(New(pid, ctest.CPU()), sampler.Config{Interval: time.Millisecond}, sampler.NewQueue(1))
		defer r.proc.Close()
		if err := r.open(); err != nil {
			t.Fatal(err)
		}
		defer r.close()
		time.Sleep(300 * time.Millisecond)
		ctest.Eventually(t, "the kernel has written enough", func() bool {
			written = 0
			for _, ring := range r.rings.steady {
				written += atomic.LoadUint64(ring.Head)
			}
			return enough(written)
		})
		return written
	}
	if n := heads(asleep.PID, func(uint64) bool { return true }); n != 0 {
		t.Errorf("%d bytes were written while the process slept", n)
	}
	// A process that runs all the time has no CPU for a while if a hypervisor takes the CPU.
	heads(busy.PID, func(written uint64) bool { return written > 0 })
}

// TestWidePeriods: the events of CPUs have the rate that was asked for, and meet each part of a program that does the
// same thing twice a second. Goprof itself wakes up once a second in a lean run, and looks around four times in others.
func TestWidePeriods(t *testing.T) {
	const again = int64(time.Second / 2)
	for _, c := range []struct {
		name  string
		rate  int64
		looks bool
	}{
		{"lean", 19, false}, {"looks, 19 Hz", 19, true}, {"looks, 100 Hz", 100, true}, {"looks, 1,000 Hz", 1000, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			interval := int64(time.Second) / c.rate
			w := &wideEvents{interval: interval, rng: rand.New(rand.NewPCG(1, 2))}
			var parts [10]float64
			n, now := 0.0, int64(0)
			for range 50_000 {
				if c.looks {
					w.next = nextLook(now, w.rng)
				}
				w.drawMoment(now)
				period, changed := int64(w.draw()), w.until
				if c.looks {
					for changed = w.next; changed < w.until; changed = nextLook(changed, w.rng) {
					}
				}
				for at := now + period; at < changed; at += period {
					parts[at%again*int64(len(parts))/again]++
					n++
				}
				now = changed
			}
			due := float64(now) / float64(interval)
			if n < 0.998*due || n > 1.002*due {
				t.Errorf("%.0f samples where %.0f are due", n, due)
			}
			for i, got := range parts {
				if want := n / float64(len(parts)); got < 0.97*want || got > 1.03*want {
					t.Errorf("part %d has %.0f samples of %.0f", i, got, want)
				}
			}
		})
	}
}

// nextLook returns the moment of the look around that follows one at after, as nextLookAround does.
func nextLook(after int64, rng *rand.Rand) int64 { return after + perfLook/2 + rng.Int64N(perfLook) }

// TestPerfSleepEnds: perf sleeps until there is something to do. Any request, and the end of the process, ends the
// sleep.
func TestPerfSleepEnds(t *testing.T) {
	needWide(t)
	p := ctest.Run(t, `int main(void) { ready(); for (;;) pause(); }`)
	r := newPerfRun(New(p.PID, ctest.CPU()), sampler.Config{Interval: 10 * time.Millisecond}, sampler.NewQueue(1))
	defer r.proc.Close()
	if err := r.open(); err != nil {
		t.Fatal(err)
	}
	defer r.close()
	if err := r.listen(); err != nil {
		t.Fatal(err)
	}
	defer r.perf.waker.close()
	sleep := func(fd int, end func()) {
		at := slices.IndexFunc(r.rings.polls, func(p unix.PollFd) bool { return int(p.Fd) == fd })
		if at < 0 {
			t.Fatal("nobody waits for it")
		}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			ptrace.OnThreadHoldingNobody(func() { // its priority ends with it
				for r.rings.polls[at].Revents == 0 { // signals of Go's own end a sleep, too
					r.rings.wait(ptrace.Monotonic() + int64(time.Second))
				}
			})
		}()
		end()
		select {
		case <-ended:
		case <-time.After(time.Minute):
			t.Fatal("it sleeps on")
		}
	}
	sleep(r.perf.waker.fd, r.perf.waker.wake)
	r.perf.waker.settle()
	if fd := r.proc.EndFD(); fd >= 0 { // kernels before 5.3 have no such descriptor
		sleep(fd, func() { unix.Kill(p.PID, unix.SIGKILL) })
	}
}

// TestPerfShortLives: threads that live some milliseconds have their share of samples, although no listing has met
// them.
func TestPerfShortLives(t *testing.T) {
	p := ctest.Run(t, `
static void *work(void *x) { for (long end = cpu_ns() + 3000000; cpu_ns() < end; ); return 0; }
int main(void) {
	ready();
	for (;;) {
		pthread_t t;
		pthread_create(&t, 0, work, 0);
		pthread_join(t, 0);
	}
}`)
	proc := procfs.OpenDir(p.PID)
	defer proc.Close()
	stood := int64(0)
	got := perfSession(t, p.PID, sampler.Config{Interval: 2 * time.Millisecond}, func(s *look.Look) {
		stood += max(s.CPU-longestPerf, 0)
	}, perfUntil(600))
	due := float64(int64(got.Times.Process)-stood) / float64(2*time.Millisecond)
	t.Logf("%d samples where %.0f are due; %+v", got.Taken, due, got.Times)
	if n := float64(got.Taken); n < 0.8*due && !sampletest.MayMiss() || n > 1.25*due {
		t.Errorf("%d samples where %.0f are due", got.Taken, due)
	}
}

// TestPerfHandsBack: a run that could not open all its events leaves none open.
func TestPerfHandsBack(t *testing.T) {
	needWide(t)
	before := openEventsOfOurs(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	p := ctest.Run(t, ctest.Spin)
	if _, err := New(p.PID, ctest.CPU()).Run(ctx, sampler.Config{Interval: time.Millisecond},
		sampler.NewQueue(1)); err != nil {
		t.Fatal(err)
	}
	if after := openEventsOfOurs(t); after != before {
		t.Errorf("%d events are open, and %d were", after, before)
	}
}

// TestPerfMetBefore: the wide events have met a thread, and the thread is to have events of its own. It gets prompt
// ones, which wake goprof up, in their own rings. Such rings must not hold samples of other threads.
func TestPerfMetBefore(t *testing.T) {
	needWide(t)
	p := ctest.Run(t, ctest.Spin)
	p.Number(t)
	r := newPerfRun(New(p.PID, ctest.CPU()), sampler.Config{Interval: time.Millisecond}, sampler.NewQueue(1))
	defer r.proc.Close()
	if err := r.open(); err != nil {
		t.Fatal(err)
	}
	defer r.close()
	r.scan.Begin()
	met, th := r.meet(p.PID)
	if met == nil {
		t.Fatal("the thread is not there")
	}
	th.Hint.Soon, th.Last.Ran = true, 1<<50 // it lacks many samples, so goprof asks on which CPUs it may run
	r.scan.Hot, r.round = append(r.scan.Hot[:0], th), r.scan.Round
	most := r.mostEvents
	r.mostEvents = 0
	if r.watchAll(); r.threads[p.PID] != met || met.hasEvents() {
		t.Errorf("there may be no events, and it has %+v", r.threads[p.PID])
	}
	r.mostEvents = most
	r.watchAll()
	if w := r.threads[p.PID]; w == nil || !w.hasEvents() {
		t.Errorf("it has %+v", w)
	}
}
