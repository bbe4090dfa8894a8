//go:build linux

package ptrace

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestSysmonRests has a thread sleep as the sampling thread does, and gives Go's sysmon its slack. sysmon must go on
// with its work: it still interrupts such a thread.
func TestSysmonRests(t *testing.T) {
	sysmonRests.Store(false)
	var enough atomic.Bool
	ended := make(chan struct{})
	interrupted, realTime := 0, false
	go func() {
		defer close(ended)
		OnOwnThread(func() {
			for realTime = ownPolicy(t) == unix.SCHED_FIFO; !enough.Load() || realTime && interrupted == 0; {
				var ts unix.Timespec
				until := Monotonic(&ts) + int64(time.Second)
				ts = unix.NsecToTimespec(until)
				if SleepUntil(&ts); Monotonic(&ts) < until {
					interrupted++
				}
			}
		})
	}()
	restSysmon()
	enough.Store(true)
	<-ended
	got := slacks(t)
	if !realTime {
		t.Skip("real-time priority is not permitted here, so other threads' slack is not, either: run as root")
	}
	if len(got) == 0 || !sysmonRests.Load() {
		t.Errorf("no thread has a slack of %v", sysmonSlack)
	}
	if slices.Contains(got, unix.Getpid()) { // runtime.main starts sysmon, on a thread of its own
		t.Errorf("the main thread has the slack: threads %v", got)
	}
}

// slacks are the threads that have sysmon's slack: sysmon itself, and threads that it has started.
func slacks(t *testing.T) (tids []int) {
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range tasks {
		tid, _ := strconv.Atoi(task.Name())
		if b, err := os.ReadFile(slackFile(tid)); err == nil {
			if ns, _ := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64); ns == int64(sysmonSlack) {
				tids = append(tids, tid)
			}
		}
	}
	return tids
}
