//go:build linux

package sampler

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"goprof/sampler/look"
	"goprof/sampler/ptrace"
	"goprof/testdata/ctest"
)

// TestPerfFollowsCPUs: a CPU is switched on while perf samples. Soon it has its events.
func TestPerfFollowsCPUs(t *testing.T) {
	cfg := Config{Interval: time.Millisecond}
	all := onlineCPUs()
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
	perfSession(t, p.PID, cfg, nil, func(pf *Perf, seen *atomic.Int64) {
		pf.Stats()
		time.Sleep(100 * time.Millisecond)
		if n := seen.Load(); n > 0 {
			t.Errorf("%d samples before that CPU was there", n)
		}
		on.Store(true)
		ctest.Eventually(t, "the thread on the CPU that came is sampled", func() bool { return seen.Load() > 50 })
	})
}

// TestVisitsTakeCPUsIn: a CPU that is switched on is visited. One that comes back gets new notes of switches.
func TestVisitsTakeCPUsIn(t *testing.T) {
	ctest.NeedCPU(t)
	p := ctest.Run(t, ctest.Spin)
	if len(onlineCPUs()) < 2 {
		t.Skip("CPUs can be visited where there are two")
	}
	ptrace.OnOwnThread(func() {
		v := newVisits(p.PID, &Config{Interval: time.Millisecond})
		if v == nil || !v.begin() {
			if os.Geteuid() == 0 {
				t.Error("root cannot visit CPUs: goprof has no real-time priority")
			} else {
				t.Log("CPUs cannot be visited here: that needs root, for real-time priority")
			}
			return
		}
		defer v.closeNotes()
		defer v.end()
		all, noted := v.numbers(), v.cpus[0].notes != nil
		v.end()
		for _, gone := range v.cpus[1:] {
			gone.notes.close()
		}
		v.cpus = v.cpus[:1]
		if !v.begin() || !v.takeIn(all, false) || !v.comesTo(all) || v.cpus[len(all)-1].notes != nil != noted {
			t.Errorf("of %v it comes to %v, with notes %v", all, v.numbers(), noted)
		}
		before := v.cpus[0].notes
		if !v.takeIn(all[1:], false) || !v.cpus[0].gone || !v.takeIn(all, false) || v.cpus[0].gone {
			t.Error("CPU 0 was gone and is back, and it is not known")
		}
		if noted && v.cpus[0].notes == before {
			t.Error("the notes of CPU 0 are those of before")
		}
		if v.takeIn(append(all, 8191), false) {
			t.Error("it comes to a CPU that is not there")
		}
	})
}

// TestVisitsBeginWithoutACPU: a CPU went off, or was taken from the program, while nobody was sampled. Visits begin
// without it, and no herald goes there: it would read notes that are given up when the CPU is back.
func TestVisitsBeginWithoutACPU(t *testing.T) {
	ctest.NeedCPU(t)
	p := ctest.Run(t, ctest.Spin)
	ptrace.OnOwnThread(func() {
		v := newVisits(p.PID, &Config{Interval: time.Millisecond})
		if v == nil || !v.begin() {
			t.Skip("CPUs cannot be visited here: that needs root, for real-time priority, and two CPUs")
		}
		defer v.closeNotes()
		defer v.end()
		all := v.numbers()
		var last unix.CPUSet
		last.Set(all[len(all)-1])
		if err := unix.SchedSetaffinity(p.PID, &last); err != nil {
			t.Fatal(err)
		}
		v.cpus = append(v.cpus, visited{number: 8191}) // it is not there at all
		if !v.begin() || !v.cpus[0].gone || !v.cpus[len(all)].gone || v.cpus[len(all)-1].gone {
			t.Fatalf("visits do not begin, or it is not known which CPUs are gone: %+v", v.cpus)
		}
		before := v.cpus[0].notes
		for i := range int64(100) {
			v.heralds.Tell(0, ptrace.Monotonic()+i*int64(time.Millisecond), 1)
		}
		if !v.takeIn(all, false) || v.cpus[0].gone || before != nil && v.cpus[0].notes == before {
			t.Error("a CPU that is back has no new notes")
		}
		before = v.cpus[0].notes
		if !v.takeIn(all, true) || before != nil && v.cpus[0].notes == before {
			t.Error("a CPU that may have been off and on has no new notes")
		}
		time.Sleep(100 * time.Millisecond) // a herald that reads notes of before would end goprof
	})
}

// TestCPUsMayHaveBeenOff: all CPUs may have been off and on while nobody asked for long, or the machine was suspended.
func TestCPUsMayHaveBeenOff(t *testing.T) {
	now, slept := ptrace.Monotonic(), suspended()
	for _, c := range []struct {
		name            string
		askedAt, before int64
		want            bool
	}{
		{"a second later", now - 1e9, slept, false},
		{"nobody has asked for a minute", now - 60e9, slept, true},
		{"the machine was suspended", now - 1e9, slept - 3e9, true},
	} {
		a := cpusAsked{c.askedAt, c.before}
		if got := a.missedMuch(now); got != c.want || a.missedMuch(now) {
			t.Errorf("%s: %v", c.name, got)
		}
	}
	known := visited{number: 3}
	if known.setGone([]int{1}) || !known.gone || known.setGone(nil) || !known.gone || !known.setGone([]int{3}) {
		t.Error("a CPU is gone while it is not there")
	}
}

func (v *visits) numbers() (cpus []int) {
	for _, c := range v.cpus {
		cpus = append(cpus, c.number)
	}
	return cpus
}

// TestPerfAfterSuspend: the machine was suspended, and the kernel has ended the events of its CPUs. perf has them
// again.
func TestPerfAfterSuspend(t *testing.T) {
	cfg := Config{Interval: time.Millisecond}
	needWide(t)
	p := ctest.Run(t, ctest.Spin)
	p.Number(t)
	q := NewQueue(1 << 10)
	r := newPerfRun(NewPerf(p.PID, ctest.CPU()), cfg, q)
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
	r.asked.at -= followEvery
	for range 20 {
		if again() {
			t.Fatal("events that have ended give samples, or are renewed without need")
		}
		time.Sleep(5 * time.Millisecond)
	}
	r.asked.at, r.asked.slept = r.asked.at-followEvery, r.asked.slept-int64(3*time.Second)
	ctest.Eventually(t, "the thread is sampled again", again)
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

// TestPerfGroupAfterSuspend: the same of a group of processes.
func TestPerfGroupAfterSuspend(t *testing.T) {
	needWide(t)
	r := &perfGroupRun{PerfGroup: NewPerfGroup(time.Millisecond, 0), rng: rand.New(rand.NewPCG(1, 2))}
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
		{"a second later", followEvery, 0, false},
		{"suspended, but it is not time to ask", 0, int64(3 * time.Second), false},
		{"suspended, and a second later", followEvery, 0, true},
	} {
		r.now = ptrace.Monotonic()
		r.asked.at, r.asked.slept = r.now-c.later, r.asked.slept-c.slept
		if r.follow(); r.failed != nil {
			t.Fatalf("%s: %v", c.name, r.failed)
		}
		if anew := !slices.Equal(first, eventIDs(t, r.wide.events)); anew != c.anew {
			t.Errorf("%s: events opened anew: %v", c.name, anew)
		}
	}
}

// eventIDs are the kernel's numbers of events, which no other event ever has.
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

// TestCPUSwitchedOff switches the last CPU off for a moment. When the CPU is back, samples come from there again.
func TestCPUSwitchedOff(t *testing.T) {
	if os.Getenv("GOPROF_SWITCH_CPUS") == "" {
		t.Skip("it disturbs the whole machine: set GOPROF_SWITCH_CPUS=1")
	}
	all := onlineCPUs()
	if len(all) < 2 {
		t.Skip("needs two CPUs")
	}
	file := fmt.Sprintf("/sys/devices/system/cpu/cpu%d/online", all[len(all)-1])
	off := func() {
		defer func() {
			if err := os.WriteFile(file, []byte("1"), 0); err != nil {
				t.Errorf("the CPU stays off: echo 1 > %s: %v", file, err)
			}
		}()
		if err := os.WriteFile(file, []byte("0"), 0); err != nil {
			t.Skipf("this machine's CPUs cannot be switched off: %v", err)
		}
		time.Sleep(time.Duration(followEvery * 3 / 2)) // goprof may miss a CPU that is off for less than this
	}
	const interval = time.Millisecond
	engines := map[string]func(t *testing.T, pid int) Engine{
		"ptrace": func(_ *testing.T, pid int) Engine { return New(pid, ctest.CPU()) },
		"perf":   func(_ *testing.T, pid int) Engine { return NewPerf(pid, ctest.CPU()) },
		"group": func(t *testing.T, pid int) Engine {
			g := NewPerfGroup(interval, 0)
			runGroup(t, g)
			return g.Member(pid)
		},
	}
	for name, engine := range engines {
		t.Run(name, func(t *testing.T) {
			p := ctest.Run(t, ctest.Shares, "4", "1", "0")
			cfg := Config{Interval: interval}
			each := func(*look.Look) {}
			got := sessionOf(t, engine(t, p.PID), cfg, 64, each, func(seen *atomic.Int64) {
				untilSamples(100)(seen)
				off()
				time.Sleep(2500 * time.Millisecond) // until goprof knows that, and threads have moved there
				n, used := seen.Load(), ProcessCPU(p.PID)
				time.Sleep(2 * time.Second)
				n, used = seen.Load()-n, ProcessCPU(p.PID)-used
				due := int64(used / cfg.Interval)
				t.Logf("%d samples where %d are due", n, due)
				if n < due*3/4 || n > due*5/4 {
					t.Errorf("%d samples where %d are due", n, due)
				}
			})
			if got.err != nil {
				t.Error(got.err)
			}
		})
	}
}
