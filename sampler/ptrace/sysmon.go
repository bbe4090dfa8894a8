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

// What Go's runtime does to a sampling thread, and how it does so less often.
//
// The sampling thread sleeps without telling Go's scheduler (SleepUntil). So to Go it runs all the time. sysmon, an OS
// thread of Go's runtime, looks each 10 ms whether a goroutine has run for 10 ms (runtime/proc.go, sysmon, retake).
// Each time it sends the sampling thread a SIGURG. The sampling thread wakes up, is handed to another OS thread of
// Go's, and gets its turn back from there. At 19 Hz this took a third of goprof's CPU time (docs/performance.md).
//
// sysmon cannot be told to leave a thread alone. But the kernel may let an ordinary thread sleep longer than it asked,
// by the thread's timer slack: then the thread wakes up together with others, or at the end of the slack. So sysmon
// gets more of that.

// sysmonSlack is how much longer sysmon may sleep. sysmon also takes the turn of a goroutine that is in a long system
// call and gives it to one that waits: that one may wait so much longer. OS threads that sysmon starts inherit the
// slack, so a timer of Go's may be late by as much. The sampling thread sets its own slack, and has none.
const sysmonSlack = 40 * time.Millisecond

// sysmonRests is set once sysmon has its slack, which it keeps until goprof ends.
var sysmonRests atomic.Bool

// restSysmon gives sysmon its slack, as soon as sysmon is found. Where that is not permitted, nothing changes.
func restSysmon() {
	const tries = 50
	for range tries {
		if sysmonRests.Load() {
			return
		}
		if tid := findSysmon(); tid != 0 {
			slack := strconv.FormatInt(int64(sysmonSlack), 10)
			sysmonRests.Store(os.WriteFile(slackFile(tid), []byte(slack), 0) == nil)
			return
		}
		time.Sleep(sysmonSlack)
	}
}

// slackFile is the file of a thread's timer slack. It is in the thread's own folder, and not below /proc/self/task.
func slackFile(tid int) string { return "/proc/" + strconv.Itoa(tid) + "/timerslack_ns" }

// findSysmon is the OS thread that sleeps by nanosleep(2); 0 is none. In Go's runtime that is usleep. Nobody else
// sleeps in it for long: a goroutine that sleeps is in no system call. sysmon is the first thread that Go starts, so of
// two that are found it is the one with the lower number.
func findSysmon() (lowest int) {
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
