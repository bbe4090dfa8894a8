//go:build linux

package session

import (
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"goprof/process/procfs"
	"goprof/profile"
	"goprof/vmstructs"
)

// Snapshots are dated by goprof's CLOCK_MONOTONIC. Java's System.nanoTime() is CLOCK_MONOTONIC, too, but in the JVM's
// time namespace. goprof reads the difference between CLOCK_MONOTONIC and the wall clock each second, because the wall
// clock may be set in the meantime.

// clock turns goprof's CLOCK_MONOTONIC into the target's clock and wall time.
type clock struct {
	ticks int64 // how far the target's clock is ahead of goprof's
	wall  int64 // how far the wall clock is ahead of goprof's
}

// refresh reads both clocks three times, and uses the pair that took the shortest time: goprof may lose its CPU between
// the two readings.
func (c *clock) refresh() {
	best := int64(-1)
	for range 3 {
		before := now()
		wall := time.Now().UnixNano()
		after := now()
		if best < 0 || after-before < best {
			best, c.wall = after-before, wall-(before+(after-before)/2)
		}
	}
}

// at converts a time of goprof's CLOCK_MONOTONIC to the target's clocks.
func (c *clock) at(when int64) profile.Instant {
	return profile.Instant{Wall: when + c.wall, Ticks: when + c.ticks}
}

// Now returns the present time on the clocks of the process.
func (s *Session) Now() profile.Instant {
	c := clock{ticks: int64(s.timeOffset)}
	c.refresh()
	return c.at(now())
}

// timeOffset returns how far CLOCK_MONOTONIC of a process is ahead of goprof's. It is 0 in the same time namespace, and
// if the kernel does not show it. A process that has made a namespace for its children is still in the old namespace
// itself.
func timeOffset(pid int) time.Duration {
	theirs, ok := procfs.ClockAhead(strconv.Itoa(pid))
	ours, ok2 := procfs.ClockAhead("self")
	if !ok || !ok2 {
		return 0
	}
	return theirs - ours
}

// startOf returns when a process was started. It is zero if that is not known.
func startOf(pid int) time.Time {
	stat, _, err := procfs.ReadStat(pid, pid)
	if err != nil {
		return time.Time{}
	}
	return since(stat.Start)
}

// since converts clock ticks after the machine's start to a time, by the present wall clock. It is zero if that is not
// known.
func since(start uint64) time.Time {
	var boot unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &boot) != nil {
		return time.Time{}
	}
	return time.Now().Add(procfs.Ticks(start) - time.Duration(boot.Nano()))
}

// Life returns two moments between which the JVM began: the start of its process, and the start of the thread that each
// JVM makes early (runtime/vmThread.cpp).
func (s *Session) Life() (l vmstructs.Lifetime) {
	l.Since = startOf(s.Process.PID())
	threads, _ := s.Process.Threads()
	for i := range threads {
		if threads[i].Comm == "VM Thread" {
			l.Until = since(threads[i].Start + 1)
			break
		}
	}
	return l
}
