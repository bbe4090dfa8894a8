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

// If a system call has not returned for seconds, it waits for memory or a file, or its OS thread waits for a CPU. The
// kernel shows which: /proc/TID/syscall of a thread that waits for a CPU says "running" (fs/proc/base.c,
// proc_pid_syscall).

// waiting are the system calls that a process or a file system can block.
var waiting = []int{unix.SYS_PROCESS_VM_READV, unix.SYS_PREAD64, unix.SYS_READ, unix.SYS_OPENAT, unix.SYS_OPENAT2,
	unix.SYS_READLINKAT, unix.SYS_STATX, unix.SYS_GETDENTS64, unix.SYS_PTRACE, unix.SYS_CLOSE, unix.SYS_NEWFSTATAT}

// Late is the reason why system calls of goprof have not returned.
type Late int

const (
	NoCPU  Late = iota // no call sleeps: goprof gets no CPU
	Locked             // a call waits for the lock of an address space. Perhaps the lock's holder gets no CPU
	Asleep             // a call in waiting sleeps, or the kernel does not show the threads' calls
)

// CallSleeps reports whether a system call of goprof may never return.
func CallSleeps() bool { return WhyLate() == Asleep }

// WhyLate finds out why calls are late, from the OS threads of this process.
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

// sleepsIn reports whether a thread sleeps in one of the calls in waiting. line is its /proc/TID/syscall: the number of
// the call and its arguments, one word if the thread runs or waits for a CPU, or -1 if it sleeps outside of calls.
// Reads of goprof's own pipes and sockets do not count.
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

// mostPatience is the number of limits that InTime waits if goprof gets no CPU.
const mostPatience = 5

// InTime reports whether done is closed within limit. If goprof gets no CPU, InTime waits up to mostPatience limits. If
// a call sleeps in the kernel, it waits for one limit only.
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

// OwnDelay returns how long the living OS threads of this process have waited for a CPU, in total.
func OwnDelay() (waited time.Duration) {
	tids, _ := listThreads(os.Getpid())
	for _, tid := range tids {
		b, _ := procfs.Read("/proc/self/task/"+strconv.Itoa(tid)+"/schedstat", 128)
		s, _ := procfs.ParseSchedstat(b)
		waited += time.Duration(s.Waited)
	}
	return waited
}
