//go:build linux

package diagnose

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// procStat is what is needed of /proc/PID/stat (fs/proc/array.c, do_task_stat). It takes
// no lock of the address space, so it can be read of a process that hangs.
type procStat struct {
	comm    string
	state   byte
	threads int
	cpu     time.Duration
	start   time.Duration // since boot
	memory  uint64        // bytes of address space; 0 for threads of the kernel
}

// tick is the unit of time in stat: USER_HZ is 100 on all CPUs that we know
// (include/asm-generic/param.h).
const tick = 10 * time.Millisecond

func (h Host) stat(pid int) (procStat, bool) {
	b, ok := h.read(h.file(pid, "stat"), maxProcFile)
	if !ok {
		return procStat{}, false
	}
	return parseProcStat(b)
}

// parseProcStat finds the name between the first and the last parenthesis, as it may hold
// some itself.
func parseProcStat(b []byte) (s procStat, ok bool) {
	open, end := bytes.IndexByte(b, '('), bytes.LastIndexByte(b, ')')
	if open < 0 || end < open {
		return s, false
	}
	s.comm = strings.ToValidUTF8(string(b[open+1:end]), "\uFFFD")
	f := bytes.Fields(b[end+1:]) // f[0] is field 3
	if len(f) < 21 || len(f[0]) != 1 {
		return s, false
	}
	number := func(field int) uint64 {
		n, err := strconv.ParseUint(string(f[field-3]), 10, 64)
		ok = ok && err == nil
		return n
	}
	ok = true
	s.state = f[0][0]
	s.cpu = ticks(number(14)) + ticks(number(15))
	s.threads = int(min(number(20), 1<<30))
	s.start = ticks(number(22))
	s.memory = number(23)
	return s, ok
}

func ticks(n uint64) time.Duration { return time.Duration(min(n, 1<<38)) * tick }

// uptime is how long the host has been up.
func (h Host) uptime() (time.Duration, bool) {
	b, ok := h.read(filepath.Join(h.proc(), "uptime"), 256)
	first, _, _ := strings.Cut(string(b), " ")
	s, err := strconv.ParseFloat(first, 64)
	if !ok || err != nil || !(s >= 0 && s < 1e9) {
		return 0, false
	}
	return time.Duration(s * float64(time.Second)), true
}

// maxCommandLine bounds what is read of a command line: class paths are long.
const maxCommandLine = 1 << 20

// commandLine is the command line as the process has it now: it may write there.
func (h Host) commandLine(pid int) []string {
	b, _ := h.read(h.file(pid, "cmdline"), maxCommandLine)
	b = bytes.TrimRight(b, "\x00")
	if len(b) == 0 {
		return nil
	}
	return strings.Split(strings.ToValidUTF8(string(b), "\uFFFD"), "\x00")
}

// maxThreadsAsked bounds how many threads of a process are asked. HotSpot starts its own
// before those of the program.
const maxThreadsAsked = 256

// threads lists the first threads of a process, as /proc names them.
func (h Host) threads(pid int) []string {
	dir, err := os.Open(h.file(pid, "task"))
	if err != nil {
		return nil
	}
	defer dir.Close()
	tids, _ := dir.Readdirnames(maxThreadsAsked)
	return tids
}

// hasThread reports whether one of the process's first threads has that name.
func (h Host) hasThread(pid int, name string) bool {
	for _, tid := range h.threads(pid) {
		b, ok := h.read(h.file(pid, filepath.Join("task", tid, "comm")), 64)
		if ok && string(bytes.TrimSuffix(b, []byte("\n"))) == name {
			return true
		}
	}
	return false
}
