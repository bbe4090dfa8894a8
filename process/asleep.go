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

// CallSleeps reports whether an OS thread of this process sleeps in a call that a process or a file system can keep
// waiting. If none does, what is late is late because goprof has no CPU. It is true where the kernel does not tell.
func CallSleeps() bool {
	tids, err := listThreads(os.Getpid())
	if err != nil {
		return true
	}
	for _, tid := range tids {
		b, err := procfs.Read("/proc/self/task/"+strconv.Itoa(tid)+"/syscall", 256)
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ESRCH) {
			return true
		}
		if sleepsIn(string(b), os.Readlink) {
			return true
		}
	}
	return false
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
