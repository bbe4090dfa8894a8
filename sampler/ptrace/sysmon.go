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

// Keeping Go's runtime from waking the sampling thread.
//
// Go's scheduler does not know of the sampling thread's sleeps (SleepUntil), so for Go that thread runs all the time.
// sysmon, an OS thread of Go's runtime, checks every 10 ms whether a goroutine has run for 10 ms (runtime/proc.go,
// sysmon, retake). Each time it sends the sampling thread a SIGURG. The sampling thread wakes up and loses its
// goroutine to another OS thread of Go's, which hands it back. At 19 Hz this took a third of goprof's CPU time
// (docs/evidence/performance.md).
//
// sysmon cannot be told to leave a thread alone. But a thread may have timer slack: the kernel lets it sleep longer
// than it asked, by up to the slack, so that it wakes up together with others. So goprof gives sysmon a larger slack.

// sysmonSlack is how much longer sysmon may sleep. sysmon also takes the processor from a goroutine in a long system
// call, and gives it to a waiting one. So the waiting goroutine may wait longer by this time. OS threads that sysmon
// starts inherit the slack, so a timer of Go's may be late by as much. The sampling thread sets its own slack, and has
// none.
const sysmonSlack = 40 * time.Millisecond

// sysmon is the state of Go's sysmon thread.
var sysmon struct {
	sync.Mutex
	allowed  bool
	refused  bool // the kernel does not permit the slack
	rests    bool // sysmon has its slack
	fitting  bool // a goroutine is about to give or take the slack
	sleepers int  // threads in OnThreadHoldingNobody, and callers of RestSysmon
	folder   int  // a descriptor of sysmon's folder in /proc; 0: not found yet
}

// LetSysmonRest permits the slack while goprof samples. Programs that goprof starts later would inherit the slack, so
// call LetSysmonRest when goprof will start no more programs.
func LetSysmonRest() {
	sysmon.Lock()
	sysmon.allowed = true
	sysmon.Unlock()
	countSleepers(0)
}

// RestSysmon gives sysmon its slack, if permitted, until the returned function is called. It is for a goroutine that
// Go's scheduler wakes often. Without the slack, sysmon would look for work some fifty times after each wake-up, 20 us
// apart.
func RestSysmon() (end func()) {
	countSleepers(1)
	return func() { countSleepers(-1) }
}

// countSleepers counts a thread that begins (1) or ends (-1) to sleep without the knowledge of Go's scheduler.
func countSleepers(more int) {
	sysmon.Lock()
	defer sysmon.Unlock()
	sysmon.sleepers += more
	if sysmon.allowed && !sysmon.refused && !sysmon.fitting && mayRest() != sysmon.rests {
		sysmon.fitting = true
		go fitSysmon()
	}
}

// mayRest reports whether sysmon may have its slack. Each sleeper keeps one of Go's processors. If sleepers keep all of
// them, other goroutines get a processor only through sysmon.
func mayRest() bool {
	return sysmon.sleepers > 0 && sysmon.sleepers < runtime.GOMAXPROCS(0)
}

// fitSysmon gives sysmon its slack, or takes the slack away, as soon as sysmon is found. It ends without a change if
// the kernel does not permit that.
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

// settled makes one try, and reports whether fitSysmon is done.
func settled() bool {
	found := 0
	if sysmon.folder == 0 { // only this goroutine writes folder now
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

// writeSlack sets the timer slack of an OS thread to sysmonSlack, or to the default. The descriptor of the thread's
// folder identifies the thread, because its number could belong to another thread by now.
func writeSlack(folder int, slack bool) bool {
	fd, err := unix.Openat(folder, "timerslack_ns", unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	text := "0" // the default
	if slack {
		text = strconv.FormatInt(int64(sysmonSlack), 10)
	}
	_, err = unix.Write(fd, []byte(text))
	return err == nil
}

// findSysmon opens the folder of the OS thread that sleeps in nanosleep(2) at each of some looks, 0 if there is none.
// Go's runtime uses this call in usleep. No other OS thread is in it for long, because a sleeping goroutine is in no
// system call.
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
	if _, err := os.Stat("/proc/self/task/" + name); err != nil { // otherwise the folder is still that of sysmon
		unix.Close(fd)
		return 0
	}
	return fd
}

// sleepers returns goprof's threads that are in nanosleep(2) now, except the main thread: runtime.main starts sysmon on
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
