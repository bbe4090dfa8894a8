//go:build linux

package process

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// CheckProc returns ErrNoProc or ErrOtherProc if the numbers in /proc are not those that our own system
// calls take: to look at a process by them would meet another one.
func CheckProc() error {
	var fs unix.Statfs_t
	if unix.Statfs("/proc", &fs) != nil || fs.Type != unix.PROC_SUPER_MAGIC {
		return ErrNoProc
	}
	// Of a namespace around ours it tells all our numbers from there inward (NSpid); elsewhere we are nobody.
	self, err := readBounded("/proc/self/status", 64<<10)
	if s := parseStatus(self, 0); err != nil || s.nested || s.tgid != os.Getpid() {
		return ErrOtherProc
	}
	return nil
}

// readBounded reads at most max bytes of a file of /proc.
func readBounded(path string, max int) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, int64(max)))
}

// taskStat is what we need of /proc/PID/task/TID/stat (fs/proc/array.c, do_task_stat).
type taskStat struct {
	comm  string
	state byte
	start uint64
}

// alive: the thread has not exited. Z waits to be collected, X is just leaving.
func (s taskStat) alive() bool { return s.state != 'Z' && s.state != 'X' && s.state != 'x' }

func readStat(pid, tid int) (taskStat, error) {
	b, err := readBounded(taskFile(pid, tid, "stat"), 4096)
	if err != nil {
		return taskStat{}, err
	}
	return parseStat(b)
}

// parseStat finds the name between the first and the last parenthesis: it may hold
// parentheses itself.
func parseStat(b []byte) (taskStat, error) {
	open, end := bytes.IndexByte(b, '('), bytes.LastIndexByte(b, ')')
	if open < 0 || end < open || len(b) < end+3 {
		return taskStat{}, fmt.Errorf("process: cannot read stat: %q", b)
	}
	s := taskStat{comm: strings.ToValidUTF8(string(b[open+1:end]), "\uFFFD"), state: b[end+2]}
	// Field 3 is the state, field 22 the start time.
	fields := bytes.Fields(b[end+2:])
	if len(fields) > 19 {
		s.start, _ = strconv.ParseUint(string(fields[19]), 10, 64)
	}
	return s, nil
}

// taskStatus is what we need of /proc/PID/task/TID/status (fs/proc/array.c).
type taskStatus struct {
	tgid, tracer int
	nstid        int  // the innermost of NSpid
	nested       bool // NSpid has more than one number
}

func readStatus(pid, tid int) (taskStatus, error) {
	b, err := readBounded(taskFile(pid, tid, "status"), 64<<10)
	if err != nil {
		return taskStatus{}, err
	}
	if len(b) == 0 {
		return taskStatus{}, unix.ESRCH
	}
	return parseStatus(b, tid), nil
}

func parseStatus(b []byte, tid int) taskStatus {
	s := taskStatus{nstid: tid}
	for line := range bytes.Lines(b) {
		key, rest, _ := bytes.Cut(line, []byte(":"))
		fields := bytes.Fields(rest)
		if len(fields) == 0 {
			continue
		}
		first, err := strconv.Atoi(string(fields[0]))
		if err != nil {
			continue
		}
		switch string(key) {
		case "Tgid":
			s.tgid = first
		case "TracerPid":
			s.tracer = first
		case "NSpid": // outermost first
			if n, err := strconv.Atoi(string(fields[len(fields)-1])); err == nil {
				s.nstid, s.nested = n, len(fields) > 1
			}
		}
	}
	return s
}

func taskFile(pid, tid int, name string) string {
	return "/proc/" + strconv.Itoa(pid) + "/task/" + strconv.Itoa(tid) + "/" + name
}
