//go:build linux

package visit

import (
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"goprof/sampler"
	"goprof/sampler/cpuset"
	"goprof/sampler/look"
	"goprof/sampler/perf"
	"goprof/sampler/ptrace"
	"goprof/sampler/threads"
	"goprof/testdata/ctest"
	"goprof/testdata/sampletest"
)

// TestVisitsTakeCPUsIn: a CPU that is switched on is visited. A CPU that is on again gets new notes of switches.
func TestVisitsTakeCPUsIn(t *testing.T) {
	ctest.NeedCPU(t)
	p := ctest.Run(t, ctest.Spin)
	if len(cpuset.Online()) < 2 {
		t.Skip("CPUs can be visited where there are two")
	}
	ptrace.OnOwnThread(func() {
		v, _ := newVisits(p.PID, &sampler.Config{Interval: time.Millisecond})
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

// TestWhyNoVisits: if CPUs cannot be visited, goprof reports the true cause.
func TestWhyNoVisits(t *testing.T) {
	online := cpuset.Online()
	if len(online) < 2 {
		t.Skip("CPUs can be visited where there are two")
	}
	p := ctest.Run(t, ctest.Spin)
	var first unix.CPUSet
	first.Set(online[0])
	why := func() sampler.NoVisits {
		v, why := newVisits(p.PID, &sampler.Config{Interval: time.Millisecond, NoNotes: true})
		if (v == nil) != (why != 0) {
			t.Errorf("visits: %v, but: %d", v != nil, why)
		}
		return why
	}
	ptrace.OnOwnThread(func() {
		if got := why(); got != 0 {
			t.Errorf("on all CPUs: %d", got)
		}
		if err := unix.SchedSetaffinity(0, &first); err != nil {
			t.Fatal(err)
		}
		if got := why(); got != sampler.OtherCPUs {
			t.Errorf("goprof is kept to a CPU: %d", got)
		}
		if err := unix.SchedSetaffinity(p.PID, &first); err != nil {
			t.Fatal(err)
		}
		if got := why(); got != sampler.OneCPU {
			t.Errorf("both are kept to a CPU: %d", got)
		}
	})
}

// TestVisitsBeginWithoutACPU: a CPU went off, or was taken from the program, while no thread was sampled. Visits begin
// without that CPU, and no preempter goes there: it would read notes that are given up when the CPU is back.
func TestVisitsBeginWithoutACPU(t *testing.T) {
	ctest.NeedCPU(t)
	p := ctest.Run(t, ctest.Spin)
	ptrace.OnOwnThread(func() {
		v, _ := newVisits(p.PID, &sampler.Config{Interval: time.Millisecond})
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
		v.cpus = append(v.cpus, visited{number: 8191}) // there is no such CPU
		if !v.begin() || !v.cpus[0].gone || !v.cpus[len(all)].gone || v.cpus[len(all)-1].gone {
			t.Fatalf("visits do not begin, or it is not known which CPUs are gone: %+v", v.cpus)
		}
		before := v.cpus[0].notes
		for i := range int64(100) {
			v.preempters.Tell(0, ptrace.Monotonic()+i*int64(time.Millisecond), 1)
		}
		if !v.takeIn(all, false) || v.cpus[0].gone || before != nil && v.cpus[0].notes == before {
			t.Error("a CPU that is back has no new notes")
		}
		before = v.cpus[0].notes
		if !v.takeIn(all, true) || before != nil && v.cpus[0].notes == before {
			t.Error("a CPU that may have been off and on has no new notes")
		}
		time.Sleep(100 * time.Millisecond) // a preempter that reads the old notes would end goprof
	})
}

// TestCPUsMayHaveBeenOff: all CPUs may have been off and on while goprof did not check for long, or the machine was
// suspended.
func TestCPUsMayHaveBeenOff(t *testing.T) {
	now, slept := ptrace.Monotonic(), cpuset.AskedNow().Slept
	for _, c := range []struct {
		name            string
		askedAt, before int64
		want            bool
	}{
		{"a second later", now - 1e9, slept, false},
		{"nobody has asked for a minute", now - 60e9, slept, true},
		{"the machine was suspended", now - 1e9, slept - 3e9, true},
	} {
		a := cpuset.Asked{At: c.askedAt, Slept: c.before}
		if got := a.MissedMuch(now); got != c.want || a.MissedMuch(now) {
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

// TestCPUSwitchedOff switches the last CPU off for a moment. When the CPU is back, samples come from there again.
func TestCPUSwitchedOff(t *testing.T) {
	if os.Getenv("GOPROF_SWITCH_CPUS") == "" {
		t.Skip("it disturbs the whole machine: set GOPROF_SWITCH_CPUS=1")
	}
	all := cpuset.Online()
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
		time.Sleep(time.Duration(cpuset.Every * 3 / 2)) // goprof may miss a CPU that is off for less than this
	}
	const interval = time.Millisecond
	engines := map[string]func(t *testing.T, pid int) sampler.Engine{
		"ptrace": func(_ *testing.T, pid int) sampler.Engine { return New(pid, ctest.CPU()) },
		"perf":   func(_ *testing.T, pid int) sampler.Engine { return perf.New(pid, ctest.CPU()) },
		"group": func(t *testing.T, pid int) sampler.Engine {
			g := perf.NewGroup(interval, 0)
			sampletest.RunGroup(t, g, ErrNoVisits, perf.ErrNoWide)
			return g.Member(pid)
		},
	}
	for name, engine := range engines {
		t.Run(name, func(t *testing.T) {
			p := ctest.Run(t, ctest.Shares, "4", "1", "0")
			cfg := sampler.Config{Interval: interval}
			each := func(*look.Look) {}
			got := sampletest.Session(t, engine(t, p.PID), cfg, 64, each, func(seen *atomic.Int64) {
				sampletest.UntilSamples(100)(seen)
				off()
				time.Sleep(2500 * time.Millisecond) // until goprof knows that, and threads have moved there
				n, used := seen.Load(), threads.ProcessCPU(p.PID)
				time.Sleep(2 * time.Second)
				n, used = seen.Load()-n, threads.ProcessCPU(p.PID)-used
				due := int64(used / cfg.Interval)
				t.Logf("%d samples where %d are due", n, due)
				if n < due*3/4 || n > due*5/4 {
					t.Errorf("%d samples where %d are due", n, due)
				}
			})
			if got.Err != nil {
				t.Error(got.Err)
			}
		})
	}
}
