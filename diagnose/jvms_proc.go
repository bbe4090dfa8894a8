//go:build linux

package diagnose

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"time"

	"goprof/process/procfs"
)

// stat returns what every user may read of a process, and its name. ok is false if a necessary field is missing.
func (h Host) stat(pid int) (s procfs.Stat, comm string, ok bool) {
	b, ok := h.read(h.file(pid, "stat"), procfs.MaxFile)
	if !ok {
		return s, "", false
	}
	s, ok = procfs.ParseStat(b)
	return s, procfs.Comm(b), ok
}

// uptime returns the uptime of the host.
func (h Host) uptime() (time.Duration, bool) {
	b, ok := h.read(filepath.Join(h.proc(), "uptime"), 256)
	if !ok {
		return 0, false
	}
	return procfs.Uptime(b)
}

// maxCommandLine limits how much of a command line is read. Class paths are long.
const maxCommandLine = 1 << 20

// commandLine returns the present command line. A process may change it.
func (h Host) commandLine(pid int) []string {
	b, _ := h.read(h.file(pid, "cmdline"), maxCommandLine)
	b = bytes.TrimRight(b, "\x00")
	if len(b) == 0 {
		return nil
	}
	return strings.Split(strings.ToValidUTF8(string(b), "\uFFFD"), "\x00")
}

// maxThreadsAsked limits how many threads of a process are read. HotSpot starts its own threads before those of the
// program.
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

// hasVMThread reports whether one of the process's first threads has the name of HotSpot's VM thread.
func (h Host) hasVMThread(pid int) bool {
	for _, tid := range h.threads(pid) {
		b, ok := h.read(h.file(pid, filepath.Join("task", tid, "comm")), 64)
		if ok && string(bytes.TrimSuffix(b, []byte("\n"))) == vmThreadName {
			return true
		}
	}
	return false
}
