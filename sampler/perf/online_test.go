//go:build linux

package perf

import (
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"goprof/sampler"
	"goprof/sampler/cpuset"
	"goprof/sampler/ptrace"
	"goprof/sampler/ring"
	"goprof/testdata/ctest"
)

// TestPerfFollowsCPUs: a CPU that is switched on while perf samples soon has its events.
func TestPerfFollowsCPUs(t *testing.T) {
	cfg := sampler.Config{Interval: time.Millisecond}
	all := cpuset.Online()
	if len(all) < 2 {
		t.Skip("needs two CPUs")
	}
	p := ctest.Run(t, ctest.Spin)
	p.Number(t)
	var last unix.CPUSet
	last.Set(all[len(all)-1])
	if err := unix.SchedSetaffinity(p.PID, &last); err != nil {
		t.Fatal(err)
	}
	var on atomic.Bool
	cfg.Online = func() []int {
		if on.Load() {
			return all
		}
		return all[:1]
	}
	perfSession(t, p.PID, cfg, nil, func(pf *Engine, seen *atomic.Int64) {
		pf.Stats()
		time.Sleep(100 * time.Millisecond)
		if n := seen.Load(); n > 0 {
			t.Errorf("%d samples before that CPU was there", n)
		}
		on.Store(true)
		ctest.Eventually(t, "the thread on the CPU that came is sampled", func() bool { return seen.Load() > 50 })
	})
}

// TestPerfAfterSuspend: after the machine was suspended, and the kernel has ended the events of its CPUs, perf opens
// them again.
func TestPerfAfterSuspend(t *testing.T) {
	cfg := sampler.Config{Interval: time.Millisecond}
	needWide(t)
	p := ctest.Run(t, ctest.Spin)
	p.Number(t)
	q := sampler.NewQueue(1 << 10)
	r := newPerfRun(New(p.PID, ctest.CPU()), cfg, q)
	defer r.proc.Close()
	if err := r.open(); err != nil {
		t.Fatal(err)
	}
	defer r.close()
	r.now = ptrace.Monotonic()
	r.lookAround()
	r.endEvents(t)
	r.drain()
	before := r.stats.Taken
	again := func() bool {
		r.now = ptrace.Monotonic()
		r.lookAround()
		r.drain()
		return r.stats.Taken > before
	}
	r.asked.At -= cpuset.Every
	for range 20 {
		if again() {
			t.Fatal("events that have ended give samples, or are renewed without need")
		}
		time.Sleep(5 * time.Millisecond)
	}
	r.asked.At, r.asked.Slept = r.asked.At-cpuset.Every, r.asked.Slept-int64(3*time.Second)
	ctest.Eventually(t, "the thread is sampled again", again)
}

func TestPerfGroupAfterSuspend(t *testing.T) {
	needWide(t)
	r := &perfGroupRun{Group: NewGroup(time.Millisecond, 0), rng: rand.New(rand.NewPCG(1, 2))}
	if err := r.prepare(); err != nil {
		t.Skip("this machine does not permit perf events of CPUs with a filter (CAP_PERFMON, CAP_BPF, no PID namespace)")
	}
	defer r.chooser.close()
	if !r.open() {
		t.Fatal("the events cannot be opened")
	}
	defer r.close()
	if err := r.waker.open(); err != nil {
		t.Fatal(err)
	}
	defer r.waker.close()
	first := eventIDs(t, r.wide.events)
	for _, c := range []struct {
		name         string
		later, slept int64
		anew         bool
	}{
		{"a second later", cpuset.Every, 0, false},
		{"suspended, but it is not time to ask", 0, int64(3 * time.Second), false},
		{"suspended, and a second later", cpuset.Every, 0, true},
	} {
		r.now = ptrace.Monotonic()
		r.asked.At, r.asked.Slept = r.now-c.later, r.asked.Slept-c.slept
		if r.follow(); r.failed != nil {
			t.Fatalf("%s: %v", c.name, r.failed)
		}
		if anew := !slices.Equal(first, eventIDs(t, r.wide.events)); anew != c.anew {
			t.Errorf("%s: events opened anew: %v", c.name, anew)
		}
	}
}

// endEvents does to all events what the kernel does where their CPUs are switched off.
func (r *perfRun) endEvents(t *testing.T) {
	end := func(events []perfEvent) {
		for _, e := range events {
			if e.fd < 0 {
				continue
			}
			if err := unix.IoctlSetInt(int(e.fd), unix.PERF_EVENT_IOC_DISABLE, 0); err != nil {
				t.Fatal(err)
			}
		}
	}
	end(r.wide.events)
	for _, th := range r.threads {
		end(th.events)
	}
}

// eventIDs returns the kernel's numbers of events, which no other event ever has.
func eventIDs(t *testing.T, events []perfEvent) (ids []uint64) {
	for _, e := range events {
		var id uint64
		if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(e.fd), unix.PERF_EVENT_IOC_ID,
			uintptr(unsafe.Pointer(&id))); errno != 0 {
			t.Fatal(errno)
		}
		ids = append(ids, id)
	}
	return ids
}

// TestHostSaysWhatIsNotSampled: if the events of CPUs cannot be opened again, goprof reports it and tries again.
func TestHostSaysWhatIsNotSampled(t *testing.T) {
	h, err := OpenHost(time.Second)
	if err != nil {
		t.Skip("this machine does not permit perf events of CPUs (CAP_PERFMON, no PID namespace)")
	}
	defer h.Close()
	suspend := func() { h.asked.At, h.asked.Slept = h.asked.At-cpuset.Every, h.asked.Slept-int64(3*time.Second) }
	var files unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &files); err != nil {
		t.Fatal(err)
	}
	suspend()
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 0, Max: files.Max}); err != nil {
		t.Fatal(err)
	}
	h.Read()
	unix.Setrlimit(unix.RLIMIT_NOFILE, &files)
	if h.Unsampled() != len(cpuset.Online()) {
		t.Errorf("%d CPUs are not sampled", h.Unsampled())
	}
	h.asked.At -= cpuset.Every
	if h.Read(); h.Unsampled() != 0 || h.samples.wide.failed != nil {
		t.Errorf("%d CPUs are still not sampled: %v", h.Unsampled(), h.samples.wide.failed)
	}
}

// TestHostBesideRenames: a program that renames its threads all the time fills the rings with such records. No sample
// is lost.
func TestHostBesideRenames(t *testing.T) {
	h, err := OpenHost(time.Second / 19)
	if err != nil {
		t.Skip("this machine does not permit perf events of CPUs (CAP_PERFMON, no PID namespace)")
	}
	defer h.Close()
	p := ctest.Run(t, `
#include <sys/prctl.h>
int main(void) {
	ready();
	for (;;) { prctl(PR_SET_NAME, "one"); prctl(PR_SET_NAME, "other"); }
}`)
	met, full := 0, false
	ctest.Eventually(t, "the rings are full, and the program was met", func() bool {
		seen, samples, tasks := h.Read()
		for i := range seen {
			if seen[i].Kind == ring.KindSample && seen[i].PID == p.PID {
				met++
			}
		}
		if full = full || tasks > 0; samples != 0 {
			t.Errorf("%d samples are lost", samples)
		}
		time.Sleep(300 * time.Millisecond)
		return full && met > 0
	})
}
