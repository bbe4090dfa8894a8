//go:build linux

package ptrace

import (
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestSysmonRests has a thread sleep as the sampling thread does. Meanwhile Go's sysmon has its slack, and goes on with
// its work: it still interrupts such a thread. Afterwards, and where such threads keep all of Go's processors, it has
// no slack.
func TestSysmonRests(t *testing.T) {
	if runtime.GOMAXPROCS(0) < 2 {
		t.Skip("Go has one processor here, which the sleeping thread keeps: sysmon gets no slack")
	}
	LetSysmonRest()
	defer func() {
		sysmon.Lock()
		sysmon.allowed = false
		sysmon.Unlock()
	}()
	realTime, interrupted := false, 0
	OnOwnThread(func() {
		realTime = ownPolicy(t) == unix.SCHED_FIFO
		if realTime {
			awaitSlack(t, true)
		}
		for end := time.Now().Add(time.Minute); interrupted == 0 && time.Now().Before(end); {
			var ts unix.Timespec
			until := Monotonic() + int64(time.Second)
			ts = unix.NsecToTimespec(until)
			if SleepUntil(&ts); Monotonic() < until {
				interrupted++
			}
		}
	})
	if !realTime {
		t.Skip("real-time priority is not permitted here, so other threads' slack is not, either: run as root")
	}
	if interrupted == 0 {
		t.Error("sysmon has not interrupted the thread in a minute")
	}
	awaitSlack(t, false)
	sleepAll(t, runtime.GOMAXPROCS(0)-1)
}

// sleepAll counts one sleeping thread, and then so many others that all of Go's processors are kept.
func sleepAll(t *testing.T, others int) {
	countSleepers(1)
	awaitSlack(t, true)
	countSleepers(others)
	awaitSlack(t, false)
	countSleepers(-others)
	awaitSlack(t, true)
	countSleepers(-1)
	awaitSlack(t, false)
}

// awaitSlack waits until sysmon has its slack, or has it no more. It sleeps without telling Go, as sampling threads do:
// where nothing runs sysmon waits for something to begin, and cannot be found.
func awaitSlack(t *testing.T, want bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; {
		ts := unix.NsecToTimespec(Monotonic() + int64(10*time.Millisecond))
		SleepUntil(&ts)
		sysmon.Lock()
		folder, rests := sysmon.folder, sysmon.rests
		sysmon.Unlock()
		if has := folder != 0 && slackOf(t, folder) == sysmonSlack; has == want && rests == want {
			return
		}
		if time.Now().After(end) {
			t.Errorf("sysmon has its slack: %v, not %v, after a minute", !want, want)
			return
		}
	}
}

// slackOf reads the slack of the thread of a folder.
func slackOf(t *testing.T, folder int) time.Duration {
	t.Helper()
	fd, err := unix.Openat(folder, "timerslack_ns", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Error(err)
		return 0
	}
	defer unix.Close(fd)
	text := make([]byte, 32)
	n, err := unix.Read(fd, text)
	if err != nil {
		t.Error(err)
		return 0
	}
	ns, err := strconv.ParseInt(strings.TrimSpace(string(text[:n])), 10, 64)
	if err != nil {
		t.Error(err)
	}
	return time.Duration(ns)
}
