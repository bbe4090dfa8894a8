//go:build linux

package sampler

import (
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"goprof/sampler/look"
	"goprof/sampler/ptrace"
	"goprof/testdata/ctest"
)

// TestPerfFollowsCPUs: a CPU is switched on while perf samples. Soon it has its events.
func TestPerfFollowsCPUs(t *testing.T) { eachPerf(t, checkPerfFollowsCPUs) }

func checkPerfFollowsCPUs(t *testing.T, cfg Config) {
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
		if !v.begin() || !v.takeIn(all) || !v.comesTo(all) || v.cpus[len(all)-1].notes != nil != noted {
			t.Errorf("of %v it comes to %v, with notes %v", all, v.numbers(), noted)
		}
		before := v.cpus[0].notes
		if !v.takeIn(all[1:]) || !v.cpus[0].gone || !v.takeIn(all) || v.cpus[0].gone {
			t.Error("CPU 0 was gone and is back, and it is not known")
		}
		if noted && v.cpus[0].notes == before {
			t.Error("the notes of CPU 0 are those of before")
		}
		if v.takeIn(append(all, 8191)) {
			t.Error("it comes to a CPU that is not there")
		}
	})
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
