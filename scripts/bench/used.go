//go:build linux

package main

import (
	"bytes"
	"fmt"
	"os/exec"
	"time"

	"golang.org/x/sys/unix"
)

// used is the CPU time of a profiler and of its target within one recording, and how long that took.
type used struct{ ours, theirs, wall time.Duration }

// settles is for how long a profiler works before its CPU time is read, and reads for how long until it is read again,
// in windows. The start is over by then, and looks wait for each other as they do later.
const (
	settles = 5.0 / 2
	reads   = 6
)

// usedAt reads the CPU time of a profiler at two moments of a recording. So neither its start nor its end counts.
func (b *bench) usedAt(p *program, with process, hz int) (used, error) {
	line := with.line(p, hz, b.windows(settles+reads+1))
	cmd := exec.Command(line[0], line[1:]...)
	var said bytes.Buffer
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		return used{}, err
	}
	time.Sleep(b.windows(settles))
	before, err := usedBy(cmd.Process.Pid, p.pid)
	time.Sleep(b.windows(reads))
	after, err2 := usedBy(cmd.Process.Pid, p.pid)
	lived := exists(cmd.Process.Pid)
	if e := cmd.Wait(); e != nil {
		return used{}, fmt.Errorf("%s: %w\n%s", with.name(), e, &said)
	}
	if !lived { // the clock of one that has ended stands still, and can be read until Wait
		return used{}, fmt.Errorf("%s has ended too early\n%s", with.name(), &said)
	}
	for _, e := range []error{err, err2} {
		if e != nil {
			return used{}, fmt.Errorf("the CPU time of %s: %w", with.name(), e)
		}
	}
	return used{after.ours - before.ours, after.theirs - before.theirs, after.wall - before.wall}, nil
}

// exists reports whether a child has not ended.
func exists(pid int) bool {
	var info unix.Siginfo
	err := unix.Waitid(unix.P_PID, pid, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
	return err == nil && info.Signo == 0
}

func (b *bench) windows(n float64) time.Duration { return time.Duration(n * float64(b.window)) }

func usedBy(ours, theirs int) (u used, err error) {
	u.wall = monotonic()
	if u.ours, err = processCPU(ours); err == nil {
		u.theirs, err = processCPU(theirs)
	}
	return u, err
}

// processCPU is the CPU time of all threads of a process, also of those that have ended
// (include/linux/posix-timers.h, CPUCLOCK_SCHED).
func processCPU(pid int) (time.Duration, error) {
	const sched = 2
	var ts unix.Timespec
	err := unix.ClockGettime(int32(^pid<<3|sched), &ts)
	return time.Duration(ts.Nano()), err
}
