//go:build linux

package agent

import (
	"bytes"
	"os"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"goprof/sampler/threads"
)

// processList caches the list of the host's processes. The list is read again only if it may have changed.
//
// The kernel needs microseconds to list a process, and there are hundreds of them. /proc/loadavg is cheaper. It shows
// the number of the newest thread or process, and how many threads there are (fs/proc/loadavg.c). If neither has
// changed, no process has begun, and so none has ended. Otherwise goprof asks which of the listed processes still
// exist, and which of the numbers given since the last change are processes. A new process gets its number some time
// before it can be found, so goprof also asks for the numbers of the change before. This may miss a process. So all
// processes are listed again after listAnew.
type processList struct {
	loadavg *os.File // nil: it is not open, or not the kernel's file
	pids    []int
	told    []byte // the relevant part of loadavg, read before pids
	newest  int    // the number of the newest thread at that time
	before  int    // the same at the change before that
	at      time.Time
	buf     [128]byte
}

const (
	// listAnew is the largest age of a whole list. A program that restores processes chooses their numbers, so loadavg
	// may not change.
	listAnew = 10 * time.Second
	// mostNew is the most numbers that goprof asks for. For more, a whole list is cheaper.
	mostNew = 2048
)

// read returns the cached list, or the result of list if processes may have changed.
func (l *processList) read(now time.Time, list func() []int) []int {
	told := l.threads()
	anew := told == nil || now.Sub(l.at) >= listAnew
	if !anew && bytes.Equal(told, l.told) {
		return l.pids
	}
	newest, _ := strconv.Atoi(string(told[bytes.LastIndexByte(told, ' ')+1:]))
	l.told = append(l.told[:0], told...) // read before the list: what changes meanwhile is seen the next time
	from := l.before
	l.before, l.newest = l.newest, newest
	if anew || !l.update(from) {
		l.at, l.pids = now, list()
	}
	if l.pids == nil {
		l.told = l.told[:0]
	}
	return l.pids
}

// update brings the list up to date without reading it. It asks for all numbers after from. It returns false if too
// much has changed, or if the kernel has begun with low numbers again. It also returns false if goprof does not find
// itself: then /proc is of other numbers, or the kernel does not answer.
func (l *processList) update(from int) bool {
	own := os.Getpid()
	if !slices.Contains(l.pids, own) || !isProcess(own) {
		return false
	}
	if l.newest < l.before || l.before < from || l.newest-from > mostNew {
		return false
	}
	l.pids = slices.DeleteFunc(l.pids, func(pid int) bool { return pid > from && pid <= l.newest || !isProcess(pid) })
	for n := from + 1; n <= l.newest; n++ {
		if isProcess(n) {
			l.pids = append(l.pids, n)
		}
	}
	return true
}

// isProcess reports whether a number is that of a process, and not of one of its other threads. Only a process has a
// clock of this kind (kernel/time/posix-cpu-timers.c, pid_for_clock), and anybody may ask for the clock.
func isProcess(n int) bool { return unix.ClockGetres(threads.ProcessClock(n), nil) == nil }

// threads returns the part of /proc/loadavg with the number of threads and the number of the newest one: in "0.20 0.18
// 0.12 1/80 11206" the part behind the slash. It returns nil if that is not known.
func (l *processList) threads() []byte {
	if l.loadavg == nil {
		return nil
	}
	n, _ := l.loadavg.ReadAt(l.buf[:], 0) // the error is io.EOF
	if n == len(l.buf) {
		return nil
	}
	_, told, found := bytes.Cut(l.buf[:n], []byte("/"))
	if !found || bytes.HasSuffix(bytes.TrimSpace(told), []byte(" 0")) {
		return nil // the number is missing, so this is not the kernel's file
	}
	return bytes.TrimSpace(told)
}

func openProcessList() *processList {
	l := new(processList)
	// The numbers in loadavg belong to goprof's pid namespace, but /proc may show another one.
	if self, err := os.Readlink("/proc/self"); err != nil || self != strconv.Itoa(os.Getpid()) {
		return l
	}
	f, err := os.Open("/proc/loadavg")
	if err != nil {
		return l
	}
	// In some containers another program provides the file, with older content (lxcfs).
	var at unix.Statfs_t
	if unix.Fstatfs(int(f.Fd()), &at) != nil || at.Type != unix.PROC_SUPER_MAGIC {
		f.Close()
		return l
	}
	l.loadavg = f
	return l
}
