//go:build linux

package session

import (
	"errors"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"goprof/process/procfs"
	"goprof/profile"
	"goprof/sampler/threads"
	"goprof/vmstructs"
)

// NewDump returns a dump without threads, with the present facts of the JVM.
func (s *Session) NewDump() *profile.Dump {
	version := s.VM.Version()
	d := &profile.Dump{At: time.Now(), PID: s.Process.PID(), Version: version.JDK(), Stopped: s.Stopped()}
	if f := s.Frozen(); f != nil {
		d.Frozen, d.Thaw, d.Unstopped = f.Text(), f.Thaw(), !f.Stops()
	}
	d.VM, _, _ = strings.Cut(version.Info, " (")
	d.MainClass, _ = Ask(s, func() (string, error) { return s.program(), nil })
	if started := startOf(d.PID); !started.IsZero() {
		d.Uptime = max(0, d.At.Sub(started))
	}
	return d
}

// awaitCollection waits a while for the end of a collection that has stopped the threads. Until then, references may
// lead to other objects, and less is known of each thread.
func (s *Session) awaitCollection() {
	end := time.Now().Add(collectionLimit)
	for s.VM.Collecting() && time.Now().Before(end) && !s.Stopped() && s.Frozen() == nil {
		time.Sleep(time.Millisecond)
	}
}

// describe returns what is known of a thread before it is looked at.
func (s *Session) describe(th *listedThread) profile.ThreadDump {
	tid := th.kernel.TID
	t := profile.ThreadDump{TID: tid, Name: th.name, State: s.stateOf(th), Java: th.java.Addr != 0 && !th.java.Compiler,
		Address: th.java.Addr, Age: age(th.kernel.Start)}
	t.CPU, _ = s.CPU(tid)
	if p, err := unix.Getpriority(unix.PRIO_PROCESS, tid); err == nil {
		t.Nice = 20 - p // the system call returns 20-nice, so that no result is negative (getpriority(2))
	}
	if th.java.Addr == 0 {
		return t
	}
	for range nameTries {
		facts, err := s.VM.ThreadFacts(th.java)
		if err == nil {
			t.JavaID, t.Daemon, t.Priority, t.System = facts.ID, facts.Daemon, facts.Priority, facts.System
		}
		if !errors.Is(err, vmstructs.ErrMoved) {
			break
		}
	}
	return t
}

// Settle reads the CPU time that the threads of a dump have used so far. Call it when they run or wait as before.
func (s *Session) Settle(threads []profile.ThreadDump) {
	for i := range threads {
		if t := &threads[i]; t.TID != 0 {
			t.CPUAfter, _ = s.CPU(t.TID)
		}
	}
}

// CPU returns the CPU time that a thread has used so far, in whole clock ticks if the kernel keeps no schedstat. It
// returns false if the thread has ended.
func (s *Session) CPU(tid int) (time.Duration, bool) {
	pid := s.Process.PID()
	if c, ok := threads.Charged(pid, tid); ok {
		return time.Duration(c.Ran), true
	}
	stat, _, err := procfs.ReadStat(pid, tid)
	return procfs.Ticks(stat.Ticks), err == nil
}

// age returns the time since start, which is in clock ticks after the machine's start. It is 0 if that is not known.
func age(start uint64) time.Duration {
	var boot unix.Timespec
	if start == 0 || unix.ClockGettime(unix.CLOCK_BOOTTIME, &boot) != nil {
		return 0
	}
	return max(0, time.Duration(boot.Nano())-procfs.Ticks(start))
}
