//go:build linux

package agent

import (
	"bytes"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// processList caches the list of the host's processes. The list is read again only if it may have changed.
//
// The kernel needs half a microsecond to list a process, and there are hundreds of them. /proc/loadavg is cheaper. It
// shows the number of the newest thread or process, and the number of threads (fs/proc/loadavg.c). If neither has
// changed, no process has begun, and so none has ended. There is one gap: a new process gets its number some time
// before it is listed, and both may be read in between. Then goprof would notice the process too late. So a list is
// never older than listAnew.
type processList struct {
	loadavg *os.File // nil: it is not open, or not the kernel's file
	pids    []int
	told    []byte // the relevant part of loadavg, read before pids
	at      time.Time
	buf     [128]byte
}

// listAnew is the largest age of the list. A program that restores processes chooses their numbers, so loadavg may not
// change.
const listAnew = 10 * time.Second

// read returns the cached list, or the result of list if processes may have changed.
func (l *processList) read(now time.Time, list func() []int) []int {
	told := l.threads()
	if told != nil && bytes.Equal(told, l.told) && now.Sub(l.at) < listAnew {
		return l.pids
	}
	l.told, l.at = append(l.told[:0], told...), now // before the list, so the next call sees changes meanwhile
	if l.pids = list(); l.pids == nil {
		l.told = l.told[:0]
	}
	return l.pids
}

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
	return told
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
