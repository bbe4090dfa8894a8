//go:build linux

package agent

import (
	"bytes"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// processList is the list of the host's processes, which is read only if it may have changed.
//
// The kernel needs half a microsecond to list a process, and there are hundreds of them. /proc/loadavg is cheaper. It
// shows the number of the newest thread or process, and how many threads there are (fs/proc/loadavg.c). If neither has
// changed, no process has begun, and so none has ended. There is one gap: a new process gets its number some time
// before it is listed, so both numbers may be read in between. Then goprof would see the process too late. So a list is
// never older than listAnew.
type processList struct {
	loadavg *os.File // nil: it is not open, or it is not the kernel's
	pids    []int
	told    []byte // the part of loadavg that counts, before pids was read
	at      time.Time
	buf     [128]byte
}

// listAnew is how often the list is read in any case. A program that restores processes chooses their numbers.
const listAnew = 10 * time.Second

// read returns the list. list reads it.
func (l *processList) read(now time.Time, list func() []int) []int {
	told := l.threads()
	if told != nil && bytes.Equal(told, l.told) && now.Sub(l.at) < listAnew {
		return l.pids
	}
	l.told, l.at = append(l.told[:0], told...), now // read before the list: what changes meanwhile is seen the next time
	if l.pids = list(); l.pids == nil {
		l.told = l.told[:0]
	}
	return l.pids
}

// threads returns the part of /proc/loadavg that says how many threads there are and which came last: of "0.20 0.18
// 0.12 1/80 11206" what follows the slash. nil: that is not known.
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
		return nil // no number was given: this is not Linux's own
	}
	return told
}

func openProcessList() *processList {
	l := new(processList)
	// The numbers in loadavg are those of our namespace, and the list may be another one's.
	if self, err := os.Readlink("/proc/self"); err != nil || self != strconv.Itoa(os.Getpid()) {
		return l
	}
	f, err := os.Open("/proc/loadavg")
	if err != nil {
		return l
	}
	// In some containers another program stands in for the file, and shows an earlier moment (lxcfs).
	var at unix.Statfs_t
	if unix.Fstatfs(int(f.Fd()), &at) != nil || at.Type != unix.PROC_SUPER_MAGIC {
		f.Close()
		return l
	}
	l.loadavg = f
	return l
}
