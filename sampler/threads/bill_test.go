//go:build linux

package threads

import (
	"testing"
	"time"

	"goprof/arch"
	"goprof/arch/amd64"
	"goprof/arch/arm64"
	"goprof/process/procfs"
	"goprof/sampler/look"
	"goprof/testdata/ctest"
	"goprof/testdata/sampletest"
)

// A thread sleeps until it is told to stop. Its CPU time is not billed to the place where it slept.
func TestInterruptedSleepIsNotBilled(t *testing.T) {
	for _, c := range []struct {
		what   string
		cpu    *arch.CPU
		call   int64
		result int64
		want   bool
	}{
		{"in no call", amd64.CPU, -1, -516, false},
		{"in a call that has ended", amd64.CPU, 0, 17, false},
		{"in a call that failed", amd64.CPU, 0, -11, false},
		{"read, asleep", amd64.CPU, 0, -512, true},
		{"nanosleep", amd64.CPU, 35, -516, true},
		{"arm64: not at a call", arm64.CPU, -1, 17, false},
		{"arm64: set back to its call", arm64.CPU, 63, 17, true},
	} {
		if got := IsInterrupted(c.cpu, c.call, uint64(c.result)); got != c.want {
			t.Errorf("%s: %v", c.what, got)
		}
	}
}

// TestBillsStop: what the process uses after the end of the account is in no sum, even if its threads are read later.
func TestBillsStop(t *testing.T) {
	b := bills{Now: 100e6, Base: 0, given: 60e6, stopped: true}
	th := &Thread{}
	th.Last.Ran, th.Billed = 90e6, 20e6 // 30 ms of it were used later
	got := b.sum(map[int]*Thread{1: th}, true, int64(time.Millisecond))
	if got.Process != 100*time.Millisecond || got.NotSampled != 40*time.Millisecond {
		t.Errorf("%+v", got)
	}
}

func TestHadNoCPU(t *testing.T) {
	const lookAt = 1_000_000
	before := procfs.Schedstat{Ran: 5_000, Waited: 100, Turns: 7}
	for _, c := range []struct {
		what   string
		after  procfs.Schedstat
		now    int64
		waited bool
	}{
		{"ran all the time", procfs.Schedstat{Ran: 6_000, Waited: 100, Turns: 7}, lookAt + 50, false},
		{"lost its CPU to us", procfs.Schedstat{Ran: 6_000, Waited: 140, Turns: 8}, lookAt + 50, false},
		{"had lost it before", procfs.Schedstat{Ran: 5_000, Waited: 100 + 3_000, Turns: 8}, lookAt + 50, true},
		{"lost it, and was collected late", procfs.Schedstat{Ran: 6_000, Waited: 100 + 3_000, Turns: 9}, lookAt + 4_000,
			false},
	} {
		if got := HadNoCPU(before, c.after, c.now, lookAt); got != c.waited {
			t.Errorf("%s: %v", c.what, got)
		}
	}
}

// TestExcusedOnce: CPU time that a sample carries is not excused as well, even if it was charged after the thread's
// last look, as with perf's samples.
func TestExcusedOnce(t *testing.T) {
	p := ctest.Run(t, sampletest.ManyProgram, "0")
	p.Number(t)
	proc := procfs.OpenDir(p.PID)
	defer proc.Close()
	s := New(proc, 10*time.Millisecond, 10)
	defer s.Close()
	scanFor(s, 1)
	th := s.ByTID[p.PID]
	base := th.Billed
	runOn := func() uint64 {
		was := cpuOf(t, s, p.PID)
		ctest.Eventually(t, "it runs on", func() bool { return cpuOf(t, s, p.PID) > was+int64(5*time.Millisecond) })
		return uint64(cpuOf(t, s, p.PID))
	}
	var snap look.Look
	s.Bills.BillSample(th, runOn(), false, &snap)
	runOn()
	s.ForgiveUse()
	told, used := s.Bills.given+s.Bills.Excused+th.owed(), int64(th.Last.Ran-base)
	if snap.CPU == 0 || s.Bills.Excused == 0 || told != used {
		t.Errorf("%d in samples, %d excused, %d owed: %d, of %d that it used", s.Bills.given, s.Bills.Excused, th.owed(),
			told, used)
	}
}
