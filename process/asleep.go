//go:build linux

package process

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"goprof/process/procfs"
)

// Why a system call has not returned for seconds. Either it waits for memory or a file, or its OS thread waits for a
// CPU. The kernel says which: a thread that waits for a CPU is runnable, and its /proc/TID/syscall says "running"
// (fs/proc/base.c, proc_pid_syscall).

// waiting are the calls that a process, or a file system, can keep waiting.
var waiting = []int{unix.SYS_PROCESS_VM_READV, unix.SYS_PREAD64, unix.SYS_READ, unix.SYS_OPENAT, unix.SYS_OPENAT2,
	unix.SYS_READLINKAT, unix.SYS_STATX, unix.SYS_GETDENTS64, unix.SYS_PTRACE, unix.SYS_CLOSE, unix.SYS_NEWFSTATAT}

// Late is why calls of goprof's have not come back.
type Late int

const (
	NoCPU  Late = iota // no call sleeps: goprof has no CPU
	Locked             // a call waits for the lock of an address space, whose holder may have no CPU
	Asleep             // a call sleeps that a process or a file system can keep waiting, or the kernel does not tell
)

// CallSleeps reports whether calls are late that may never come back.
func CallSleeps() bool { return WhyLate() == Asleep }

// WhyLate looks at the OS threads of this process.
func WhyLate() (why Late) {
	tids, err := listThreads(os.Getpid())
	if err != nil {
		return Asleep
	}
	for _, tid := range tids {
		dir := "/proc/self/task/" + strconv.Itoa(tid)
		before, _ := procfs.Read(dir+"/wchan", 256)
		b, err := procfs.Read(dir+"/syscall", 256)
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ESRCH) {
			return Asleep
		}
		if sleepsIn(string(b), os.Readlink) {
			after, _ := procfs.Read(dir+"/wchan", 256)
			if procfs.StaysAsleep(before, after) {
				return Asleep
			}
			if procfs.AtSpaceLock(after) {
				why = Locked
			}
		}
	}
	return why
}

// sleepsIn reads a line of syscall: the call's number and its arguments; of a thread that runs or waits for a CPU there
// is a word, and of one that sleeps outside of calls -1. goprof's reads of its own pipes and sockets do not count.
func sleepsIn(line string, link func(string) (string, error)) bool {
	words := strings.Fields(line)
	if len(words) < 2 {
		return false
	}
	call, err := strconv.Atoi(words[0])
	if err != nil || !slices.Contains(waiting, call) {
		return false
	}
	if call != unix.SYS_READ {
		return true
	}
	fd, err := strconv.ParseUint(words[1], 0, 32)
	if err != nil {
		return false
	}
	to, err := link("/proc/self/fd/" + strconv.FormatUint(fd, 10))
	return err == nil && strings.HasPrefix(to, "/") && !strings.HasPrefix(to, "/dev/")
}

// mostPatience is for how many limits InTime waits where goprof has no CPU.
const mostPatience = 5

// InTime reports whether done is closed within limit. If goprof has no CPU meanwhile, InTime waits for up to
// mostPatience limits. If a call sleeps in the kernel, it gives up at once.
func InTime(done <-chan struct{}, limit time.Duration) bool {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for range mostPatience {
		select {
		case <-done:
			return true
		case <-timer.C:
		}
		if CallSleeps() {
			return false
		}
		timer.Reset(limit)
	}
	return false
}

// OwnDelay returns how long the OS threads of this process have waited for a CPU so far, together. Threads that have
// ended do not count.
func OwnDelay() (waited time.Duration) {
	tids, _ := listThreads(os.Getpid())
	for _, tid := range tids {
		b, _ := procfs.Read("/proc/self/task/"+strconv.Itoa(tid)+"/schedstat", 128)
		s, _ := procfs.ParseSchedstat(b)
		waited += time.Duration(s.Waited)
	}
	return waited
}
