//go:build linux

package process

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"goprof/process/procfs"
)

// maxThreads bounds a list of threads. The kernel's own limit (PID_MAX_LIMIT) is 4 million. No JVM has nearly that
// many.
const maxThreads = 1 << 18

// Thread is one thread as the kernel sees it.
type Thread struct {
	TID   int
	NSTID int    // its number in its own pid namespace, which the JVM knows
	Comm  string // 15 bytes at most; valid UTF-8, otherwise as the program set it
	State byte   // R S D T t Z X I, as in /proc/PID/stat
	Start uint64 // when it began, in hundredths of a second since the machine was started (CLOCK_BOOTTIME)
}

// Threads lists the threads, lowest number first. Threads that begin or end during the listing may be missing. Other
// threads are missing only if threads end so often that each of four listings has skipped them (see completeList and
// readList).
func (p *Process) Threads() ([]Thread, error) {
	tids, err := listThreads(p.pid)
	if err != nil {
		return nil, err
	}
	threads := make([]Thread, 0, len(tids))
	for _, tid := range tids {
		if t, err := p.Thread(tid); err == nil {
			threads = append(threads, t)
		}
	}
	return threads, nil
}

// ThreadIDs lists only the threads' numbers, lowest first.
func (p *Process) ThreadIDs() ([]int, error) { return listThreads(p.pid) }

// NSTID is a thread's number in its own pid namespace.
func (p *Process) NSTID(tid int) (int, error) {
	if !p.nested {
		return tid, nil
	}
	status, err := procfs.ReadStatus(p.pid, tid)
	return status.InnerPID(tid), threadError(err)
}

// Thread returns one thread. Its error is ErrGone if the thread has ended.
func (p *Process) Thread(tid int) (Thread, error) {
	stat, comm, err := procfs.ReadStat(p.pid, tid)
	if err != nil {
		return Thread{}, threadError(err)
	}
	t := Thread{TID: tid, NSTID: tid, Comm: comm, State: stat.State, Start: stat.Start}
	if p.nested {
		status, err := procfs.ReadStatus(p.pid, tid)
		if err != nil {
			return Thread{}, threadError(err)
		}
		t.NSTID = status.InnerPID(tid)
	}
	return t, nil
}

func threadError(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH) {
		return ErrGone
	}
	return err
}

// listings bounds the attempts to get a complete list of threads.
const listings = 4

// listThreads returns the numbers of all threads, in order.
func listThreads(pid int) ([]int, error) {
	return completeList(func() ([]int, bool, error) { return listOnce(pid) })
}

// completeList calls list until a list is complete. If none is complete, because threads end all the time, it returns
// the threads of all lists. Then some of them may have ended, and a thread that each list has skipped is missing.
func completeList(list func() (tids []int, complete bool, err error)) (all []int, err error) {
	for range listings {
		tids, complete, err := list()
		if err != nil {
			return nil, err
		}
		if complete {
			all = tids
			break
		}
		all = append(all, tids...)
	}
	if len(all) == 0 {
		return nil, ErrGone
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

func listOnce(pid int) (tids []int, complete bool, err error) {
	dir, err := os.Open("/proc/" + strconv.Itoa(pid) + "/task")
	if err != nil {
		return nil, false, threadError(err)
	}
	defer dir.Close()
	before := countThreads(dir)
	buf := make([]byte, (min(max(before, 0), maxThreads)+64)*direntSize) // room for threads that begin during the listing
	return readList(before, func() (tids []int, err error) {
		n, err := unix.Getdents(int(dir.Fd()), buf)
		procfs.EachTask(buf[:max(n, 0)], func(tid int) { tids = append(tids, tid) })
		return tids, err
	})
}

// direntSize is the largest entry of getdents64 for a thread: 19 bytes, 7 digits and a zero, rounded up to whole words.
const direntSize = 32

// readList reads a list of threads to its end. before is the number of threads just before that. The kernel lists from
// the oldest thread to the youngest. If the thread at its present position ends, the call of getdents64 ends there. The
// next call continues after as many threads as were listed, counted from the oldest, and so skips a live thread
// (fs/proc/base.c, next_tid and first_tid). Hence only the list of the first call can be complete. It is complete if it
// has as many threads as there were before: if one of them were missing, the list would only have older threads, which
// are fewer.
func readList(before int, read func() ([]int, error)) (tids []int, complete bool, err error) {
	complete = before <= 0 // not known
	for first := true; len(tids) < maxThreads; first = false {
		part, err := read()
		if err != nil {
			return nil, false, threadError(err)
		}
		if len(part) == 0 {
			break
		}
		tids = append(tids, part...)
		complete = complete || first && len(tids) >= before
	}
	return tids, complete, nil
}

// countThreads returns the number of a process's threads: the links of its folder task minus two (fs/proc/base.c,
// proc_task_getattr). It is 0 or less if the kernel does not count links.
func countThreads(task *os.File) int {
	var st unix.Stat_t
	if unix.Fstat(int(task.Fd()), &st) != nil {
		return 0
	}
	return int(st.Nlink) - 2
}
