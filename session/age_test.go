//go:build linux

package session

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"goprof/process"
	"goprof/profile"
	"goprof/sampler"
	"goprof/sampler/look"
)

// TestNamesOfThen: a stack that waited for its walk gets the name that its thread had at the look, if that name was
// read.
func TestNamesOfThen(t *testing.T) {
	th := &listedThread{kernel: process.Thread{TID: 7}, name: "task-2", oldLabel: "[task-1 tid=7]", oldRead: 1000,
		newRead: 2000, named: time.Now()}
	d := &directory{threads: map[int]*listedThread{7: th}}
	for when, want := range map[int64]string{900: "[task-1 tid=7]", 1400: "[task-1 tid=7]", 1600: "[task-2 tid=7]",
		2100: "[task-2 tid=7]"} {
		if got := d.labelAt(7, when); got != want {
			t.Errorf("at %d: %s, want %s", when, got, want)
		}
	}
	if got := d.labelAt(8, 1000); got != "[? tid=8]" {
		t.Errorf("a thread that is not known: %s", got)
	}
}

// TestThreadNumbersComeBack: a look from before a thread's start is a look at another thread with the same number.
func TestThreadNumbersComeBack(t *testing.T) {
	self := os.Getpid()
	stat, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	start, err := strconv.ParseUint(fields[19], 10, 64) // field 22
	if err != nil {
		t.Fatal(err)
	}
	th := process.Thread{TID: self, Start: start}
	p, err := process.Open(self)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	r := &recording{Session: &Session{dir: &directory{p: p, threads: map[int]*listedThread{th.TID: {kernel: th}}}}}
	if r.beganAfter(th.TID, now()) {
		t.Error("this process began before now")
	}
	if !r.beganAfter(th.TID, now()-int64(1000*time.Hour)) {
		t.Error("this process is no thousand hours old")
	}
	if r.beganAfter(1, now()) {
		t.Error("nobody knows this thread")
	}
	sink := &told{}
	r.timed = &telling{sink: sink, begun: now(), named: maxNewNames}
	r.tellThread(r.dir.threads[th.TID], false)
	if sink.started != 0 {
		t.Error("a thread from before the recording, which a listing had missed, has just started")
	}
	r.dir.threads[th.TID].kernel.Start = start + 1e9 // another thread has the number now
	if !r.beganAfter(th.TID, now()) {
		t.Error("a thread that is still to begin")
	}
	r.tellThread(r.dir.threads[th.TID], false)
	if r.tellStarts(); sink.started != 1 {
		t.Error("a thread that has just started is not told")
	}
	r.dir.threads[th.TID].kernel.Start = 0 // as for a thread that is new in the list
	r.tellThread(r.dir.threads[th.TID], false)
	if r.tellStarts(); sink.started != 1 {
		t.Error("a thread from before the recording, of which the list alone was read, has just started")
	}
	gone := &listedThread{kernel: process.Thread{TID: 1}}
	r.dir.threads[1] = gone
	r.tellThread(gone, false)
	if r.tellThread(gone, true); sink.started != 2 {
		t.Error("a new thread that has ended meanwhile is not told")
	}
}

// TestTooOld: a sample that is too old is lost without a walk, and its CPU time is owed to its thread.
func TestTooOld(t *testing.T) {
	queue := sampler.NewQueue(4)
	r := &recording{habits: habitsOf(false), Session: &Session{dir: &directory{}}, profile: profile.New(), queue: queue,
		opt: RecordOptions{Engine: PerfEngine}}
	for age, want := range map[time.Duration]bool{0: false, behind: false, oldest - time.Second: false,
		oldest + time.Second: true} {
		snap := new(look.Look)
		snap.When = now() - int64(age)
		if got := r.isTooOld(snap); got != want {
			t.Errorf("%v: too old: %v", age, got)
		}
		snap.Tally = new(look.Tally)
		if r.isTooOld(snap) {
			t.Errorf("%v: a thread that has rested since is where it was", age)
		}
	}
	snap := new(look.Look)
	snap.Reset()
	snap.TID = 7
	c := &cpuTime{recording: r}
	c.lose(snap, profile.Stale)
	if sum := r.profile.Summary(); sum.Lost != 1 || c.owed[7].samples != 1 {
		t.Errorf("%d are lost, %d owed", sum.Lost, c.owed[7].samples)
	}
}
