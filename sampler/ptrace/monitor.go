//go:build linux

package ptrace

import (
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// Go's monitor, and what it does to a sampling thread.
//
// The sampling thread sleeps without telling Go's scheduler (SleepUntil). So to Go it runs all the time. Go's monitor
// is an OS thread that looks each 10 ms whether a goroutine has run for 10 ms (runtime/proc.go, sysmon, retake). Each
// time it sends the sampling thread a SIGURG. The sampling thread wakes up, is handed to another OS thread of Go's, and
// gets its turn back from there. At 19 Hz this took two fifths of goprof's CPU time (docs/performance.md).
//
// The monitor cannot be told to leave a thread alone. But the kernel may let an ordinary thread sleep longer than it
// asked, by the thread's timer slack: then the thread wakes up together with others, or at the end of the slack. So the
// monitor gets more of that.

// monitorSlack is how much longer the monitor may sleep. The monitor also takes the turn of a goroutine that is in a
// long system call and gives it to one that waits: that one may wait so much longer. OS threads that the monitor starts
// inherit the slack, so a timer of Go's may be late by as much. The sampling thread sets its own slack, and has none.
const monitorSlack = 40 * time.Millisecond

// monitorRests is set once the monitor has its slack. It keeps it until goprof ends.
var monitorRests atomic.Bool

// restMonitor gives the monitor its slack, as soon as the monitor is found. Where that is not permitted, nothing
// changes.
func restMonitor() {
	const tries = 50
	for range tries {
		if monitorRests.Load() {
			return
		}
		if tid := findMonitor(); tid != 0 {
			slack := strconv.FormatInt(int64(monitorSlack), 10)
			monitorRests.Store(os.WriteFile(slackFile(tid), []byte(slack), 0) == nil)
			return
		}
		time.Sleep(monitorSlack)
	}
}

// slackFile is the file of a thread's timer slack. It is in the thread's own folder, and in none below
// /proc/self/task.
func slackFile(tid int) string { return "/proc/" + strconv.Itoa(tid) + "/timerslack_ns" }

// findMonitor is the OS thread that sleeps by nanosleep(2); 0 is none. In Go's runtime that is usleep. Nobody else
// sleeps in it for long: a goroutine that sleeps is in no system call. The monitor is the first thread that Go starts,
// so of two that are found it is the one with the lower number.
func findMonitor() (lowest int) {
	tasks, _ := os.ReadDir("/proc/self/task")
	sleeps := strconv.Itoa(unix.SYS_NANOSLEEP) + " "
	for _, task := range tasks {
		call, err := os.ReadFile("/proc/self/task/" + task.Name() + "/syscall")
		if err != nil || !strings.HasPrefix(string(call), sleeps) {
			continue
		}
		if tid, _ := strconv.Atoi(task.Name()); lowest == 0 || tid < lowest {
			lowest = tid
		}
	}
	return lowest
}
