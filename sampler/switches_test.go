//go:build linux

package sampler

import (
	"encoding/binary"
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// note writes a record of a switch as the kernel does, in front of the earlier ones.
func (n *switchNotes) note(kind, misc uint32, was, now int) {
	const size = 24
	*n.head -= size
	at := *n.head & uint64(len(n.data)-1)
	for i, word := range []uint32{kind, misc | size<<16, uint32(was), uint32(was), uint32(now), uint32(now)} {
		binary.LittleEndian.PutUint32(n.data[at+uint64(4*i):], word)
	}
}

// TestNotesOfSwitches: only a switch to goprof that was noted since the visit was planned tells which thread had the
// CPU.
func TestNotesOfSwitches(t *testing.T) {
	const us = 77
	n := &switchNotes{head: new(uint64), data: make(ringBytes, 4096)}
	if was, ok := n.before(us); was != 0 || !ok {
		t.Errorf("nothing was noted: %d %v", was, ok)
	}
	for i, c := range []struct {
		kind, misc uint32
		was, now   int
		want       int
		ok         bool
	}{
		{perfSwitchCPUWide, 0, 4711, us, 4711, true},
		{perfSwitchCPUWide, 0, 0, us, 0, true},                     // no thread ran
		{perfSwitchCPUWide, 0, 4711, us + 1, 0, false},             // the CPU went to another thread
		{perfSwitchCPUWide, perfMiscSwitchOut, 4711, us, 0, false}, // goprof left
		{perfSwitchCPUWide - 1, 0, 4711, us, 0, false},             // a note without numbers
		{perfSwitchCPUWide, 1 << 14, 4712, us, 4712, true},         // the thread was preempted
		{perfSwitchCPUWide, 0, -1, us, 0, true},                    // the thread has ended
		{perfSwitchCPUWide, 0, 1<<31 - 1, us, 1<<31 - 1, true},     // the largest number
	} {
		n.mark()
		n.note(c.kind, c.misc, c.was, c.now)
		if was, ok := n.before(us); was != c.want || ok != c.ok {
			t.Errorf("%d: %d %v, want %d %v", i, was, ok, c.want, c.ok)
		}
	}
	n.mark()
	if was, ok := n.before(us); was != 0 || !ok {
		t.Errorf("nothing was noted since: %d %v", was, ok)
	}
	var none *switchNotes
	none.mark()
	none.watch(true)
	none.close()
	if _, ok := none.before(us); ok {
		t.Error("notes that are not permitted tell something")
	}
}

// TestNotesOfPreemption: goprof's coming is a note. A thread was preempted if the note before that one says so of
// this thread.
func TestNotesOfPreemption(t *testing.T) {
	const us, it = 77, 4711
	for i, c := range []struct {
		misc uint32
		of   int
		want bool
	}{
		{perfMiscSwitchOut | perfMiscPreempted, it, true},
		{perfMiscSwitchOut, it, false}, // the thread went to sleep
		{perfMiscPreempted, it, false}, // the thread came
		{perfMiscSwitchOut | perfMiscPreempted, it + 1, false},
	} {
		n := &switchNotes{head: new(uint64), data: make(ringBytes, 4096)}
		n.note(perfSwitchCPUWide, c.misc, us, c.of)
		n.note(perfSwitchCPUWide, 0, it, us)
		if got := n.preempted(it); got != c.want {
			t.Errorf("%d: %v, want %v", i, got, c.want)
		}
	}
	n := &switchNotes{head: new(uint64), data: make(ringBytes, 4096)}
	if n.preempted(it) || (*switchNotes)(nil).preempted(it) {
		t.Error("without notes a thread was preempted")
	}
}

// TestNotesAreTheKernels: this thread sleeps, and the kernel's note says that it has come back.
func TestNotesAreTheKernels(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var before, one unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		t.Fatal(err)
	}
	cpu := 0
	for !before.IsSet(cpu) {
		cpu++
	}
	one.Set(cpu)
	if err := unix.SchedSetaffinity(0, &one); err != nil {
		t.Fatal(err)
	}
	defer unix.SchedSetaffinity(0, &before)
	n := openSwitches(cpu)
	if n == nil {
		if os.Geteuid() == 0 {
			t.Fatal("root may not have notes of switches")
		}
		t.Skip("notes of switches need CAP_PERFMON, or kernel.perf_event_paranoid 0")
	}
	defer n.close()
	n.watch(true)
	for range 3000 {
		n.mark()
		unix.Nanosleep(&unix.Timespec{Nsec: 100_000}, nil)
		was, ok := n.before(unix.Gettid())
		if !ok || was < 0 || was == unix.Gettid() {
			t.Fatalf("%d %v, of thread %d", was, ok, unix.Gettid())
		}
	}
}
