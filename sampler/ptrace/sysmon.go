//go:build linux

package ptrace

import (
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// What Go's runtime does to a sampling thread, and how to make it do so less often.
//
// The sampling thread sleeps without telling Go's scheduler (SleepUntil). So to Go it runs all the time. sysmon, an OS
// thread of Go's runtime, looks each 10 ms whether a goroutine has run for 10 ms (runtime/proc.go, sysmon, retake).
// Each time it sends the sampling thread a SIGURG. The sampling thread wakes up and loses its goroutine to another OS
// thread of Go's, which hands it back. At 19 Hz this took a third of goprof's CPU time (docs/evidence/performance.md).
//
// sysmon cannot be told to leave a thread alone. But the kernel may let an ordinary thread sleep longer than it asked,
// by the thread's timer slack: then the thread wakes up together with others, or at the end of the slack. So this file
// gives sysmon a larger slack.

// sysmonSlack is how much longer sysmon may sleep. sysmon also takes the processor from a goroutine that is in a long
// system call, and gives it to one that waits. The goroutine that waits may have to wait longer by this time. OS
// threads that sysmon starts inherit the slack, so a timer of Go's may be late by as much. The sampling thread sets its
// own slack, and has none.
const sysmonSlack = 40 * time.Millisecond

// sysmon is the state of Go's sysmon thread.
var sysmon struct {
	sync.Mutex
	allowed  bool
	refused  bool // the kernel does not permit it
	rests    bool // it has its slack
	fitting  bool // a goroutine is about to give or take the slack
	sleepers int  // threads in OnThreadHoldingNobody, and users of RestSysmon
	folder   int  // a descriptor of its folder in /proc; 0: it is not found yet
}

// LetSysmonRest permits that sysmon gets its slack while goprof samples. Programs that goprof starts later would
// inherit the slack, so call it when nothing more will be started.
func LetSysmonRest() {
	sysmon.Lock()
	sysmon.allowed = true
	sysmon.Unlock()
	countSleepers(0)
}

// RestSysmon gives sysmon its slack, if permitted, until the returned function is called. It is for a goroutine that is
// woken up often through Go's scheduler. Each time sysmon would otherwise look for work some fifty times, 20 us apart.
func RestSysmon() (end func()) {
	countSleepers(1)
	return func() { countSleepers(-1) }
}

// countSleepers takes in that a thread which sleeps without telling Go has come (1) or ends (-1).
func countSleepers(more int) {
	sysmon.Lock()
	defer sysmon.Unlock()
	sysmon.sleepers += more
	if sysmon.allowed && !sysmon.refused && !sysmon.fitting && mayRest() != sysmon.rests {
		sysmon.fitting = true
		go fitSysmon()
	}
}

// mayRest reports whether sysmon may have its slack. Each sleeper keeps one of Go's processors. If they keep all of
// them, only sysmon gets one for the others.
func mayRest() bool {
	return sysmon.sleepers > 0 && sysmon.sleepers < runtime.GOMAXPROCS(0)
}

// fitSysmon gives sysmon its slack, or takes it away, as soon as sysmon is found. If that is not permitted, nothing
// changes.
func fitSysmon() {
	const tries = 50
	for range tries {
		if settled() {
			return
		}
		time.Sleep(sysmonSlack)
	}
	sysmon.Lock()
	sysmon.fitting = false
	sysmon.Unlock()
}

// settled makes one try, and reports whether there is nothing more to do.
func settled() bool {
	found := 0
	if sysmon.folder == 0 { // no other goroutine writes it meanwhile
		found = findSysmon()
	}
	sysmon.Lock()
	defer sysmon.Unlock()
	if found != 0 {
		sysmon.folder = found
	}
	if rests := mayRest(); sysmon.folder != 0 && rests != sysmon.rests {
		sysmon.refused = !writeSlack(sysmon.folder, rests)
		sysmon.rests = rests
	}
	if sysmon.folder == 0 && mayRest() {
		return false
	}
	sysmon.fitting = false
	return true
}

// writeSlack sets the slack of a thread, or the value that it had before. The thread is given by the descriptor of its
// folder, because a number could have become another thread's.
func writeSlack(folder int, slack bool) bool {
	fd, err := unix.Openat(folder, "timerslack_ns", unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	text := "0" // what is usual
	if slack {
		text = strconv.FormatInt(int64(sysmonSlack), 10)
	}
	_, err = unix.Write(fd, []byte(text))
	return err == nil
}

// findSysmon opens the folder of the OS thread that sleeps by nanosleep(2) at each of some looks; 0 is none. In Go's
// runtime that is usleep. No other OS thread sleeps in it for long: a goroutine that sleeps is in no system call.
func findSysmon() (folder int) {
	const looks = 4
	asleep := sleepers()
	for range looks - 1 {
		time.Sleep(3 * time.Millisecond)
		again := sleepers()
		asleep = slices.DeleteFunc(asleep, func(tid int) bool { return !slices.Contains(again, tid) })
	}
	if len(asleep) != 1 {
		return 0
	}
	name := strconv.Itoa(asleep[0])
	fd, err := unix.Open("/proc/"+name, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0
	}
	if _, err := os.Stat("/proc/self/task/" + name); err != nil { // else the folder is still that of sysmon
		unix.Close(fd)
		return 0
	}
	return fd
}

// sleepers are goprof's threads that are in nanosleep(2) now. The main thread is not: runtime.main starts sysmon on
// another.
func sleepers() (tids []int) {
	tasks, _ := os.ReadDir("/proc/self/task")
	sleeps := strconv.Itoa(unix.SYS_NANOSLEEP) + " "
	for _, task := range tasks {
		tid, _ := strconv.Atoi(task.Name())
		call, err := os.ReadFile("/proc/self/task/" + task.Name() + "/syscall")
		if err == nil && tid != unix.Getpid() && strings.HasPrefix(string(call), sleeps) {
			tids = append(tids, tid)
		}
	}
	return tids
}
