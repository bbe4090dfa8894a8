//go:build linux

package diagnose

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"goprof/process"
	"goprof/process/procfs"
)

// Log is a file that a JVM writes.
type Log struct {
	Name string // the last element of its path
	Time time.Time
	Size int64
	Text []byte // its end, or its beginning
}

// maxDescriptors limits how many open files of a process are examined.
const maxDescriptors = 1 << 16

const mostGCLogs = 4

// GCLogs reads the ends of the logs of garbage collection that a JVM writes, up to most bytes of each. args are the
// JVM's own arguments. GCLogs searches the files that the process has open for writing. Only files of the JVM's user
// count, so a JVM cannot make goprof read a file of another user. No file is opened by its path.
func (h Host) GCLogs(pid int, args []string, most int64) ([]Log, error) {
	return logsInTime(func() ([]Log, error) { return gcLogs(pid, args, most) })
}

// errDisk says that files were not read because they did not answer. Reading a target's file may never end.
var errDisk = errors.New("its files did not answer in time")

func logsInTime(read func() ([]Log, error)) ([]Log, error) {
	var logs []Log
	var err error
	done := make(chan struct{})
	go func() {
		logs, err = read()
		close(done)
	}()
	if process.InTime(done, lookTimeout) {
		return logs, err
	}
	return nil, errDisk
}

func gcLogs(pid int, args []string, most int64) (logs []Log, err error) {
	patterns := gcLogNames(args)
	if len(patterns) == 0 {
		return nil, nil
	}
	stat, err := procfs.ReadStatus(pid, pid)
	if err != nil {
		return nil, err
	}
	folder := fmt.Sprintf("/proc/%d/fd", pid)
	names, err := namesIn(folder)
	if err != nil {
		return nil, err
	}
	var taken []os.FileInfo
	for _, fd := range names {
		link := filepath.Join(folder, fd)
		target, err := os.Readlink(link)
		base := strings.TrimSuffix(path.Base(target), " (deleted)")
		if err != nil || !fitsLog(patterns, base) || !writable(pid, fd) {
			continue
		}
		file, size, err := process.OpenKernelLink(link)
		if err != nil {
			return logs, err
		}
		// The descriptor may now belong to another file, so the opened file is checked.
		info := ownedBy(file, stat.UID)
		if info == nil || slices.ContainsFunc(taken, func(t os.FileInfo) bool { return os.SameFile(t, info) }) {
			file.Close()
			continue
		}
		taken = append(taken, info)
		text := make([]byte, min(most, size))
		n, err := file.ReadAt(text, size-int64(len(text)))
		file.Close()
		if err != nil && err != io.EOF {
			return logs, err
		}
		text = text[:n]
		if _, lines, ok := bytes.Cut(text, []byte("\n")); ok && int64(n) < size {
			text = lines // the first line may be incomplete
		}
		if logs = append(logs, Log{Name: base, Size: size, Text: text}); len(logs) == mostGCLogs {
			break
		}
	}
	if len(logs) == 0 {
		return nil, errors.New("the JVM was told to write one, and holds none open that its own user owns")
	}
	return logs, nil
}

// ownedBy describes an open file. It returns nil if the file belongs to another user.
func ownedBy(file *os.File, uid int) os.FileInfo {
	info, err := file.Stat()
	if err != nil {
		return nil
	}
	if st, ok := info.Sys().(*syscall.Stat_t); !ok || int(st.Uid) != uid {
		return nil
	}
	return info
}

// fitsLog reports whether a file's name fits the name of the log. JDK 8 adds a number and "current" to the names of
// logs that it rotates.
func fitsLog(patterns []string, base string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		fits, _ := path.Match(p, base)
		numbered, _ := path.Match(p+".*", base)
		return fits || numbered
	})
}

// literally turns a name into a pattern: special characters are escaped, and the pid and the time become wildcards.
var literally = strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`, "%p", "*", "%t", "*", "%hn", "*")

// gcLogNames returns patterns for the names of a JVM's GC logs, from -Xlog:gc*:file=NAME (JDK 9 and later;
// share/logging/logConfiguration.cpp, logFileOutput.cpp) and -Xloggc:NAME.
func gcLogNames(args []string) (patterns []string) {
	for _, arg := range args {
		name, ok := strings.CutPrefix(arg, "-Xloggc:")
		if rest, unified := strings.CutPrefix(arg, "-Xlog:"); unified {
			what, to, _ := strings.Cut(rest, ":")
			name, ok = to, strings.Contains(what, "gc") || strings.Contains(what, "all")
			if name = strings.TrimPrefix(name, "file="); strings.HasPrefix(name, `"`) {
				name, _, _ = strings.Cut(name[1:], `"`)
			} else {
				name, _, _ = strings.Cut(name, ":")
			}
		}
		if ok && name != "" && name != "stdout" && name != "stderr" {
			patterns = append(patterns, literally.Replace(path.Base(name)))
		}
	}
	return patterns
}

// writable reports whether a descriptor was opened for writing (proc(5), fdinfo: flags in octal).
func writable(pid int, fd string) bool {
	b, err := procfs.Read(fmt.Sprintf("/proc/%d/fdinfo/%s", pid, fd), procfs.MaxFile)
	_, rest, ok := strings.Cut(string(b), "flags:")
	if err != nil || !ok {
		return false
	}
	line, _, _ := strings.Cut(strings.TrimSpace(rest), "\n")
	flags, err := strconv.ParseUint(line, 8, 64)
	return err == nil && flags&unix.O_ACCMODE != unix.O_RDONLY
}

// namesIn lists a folder of /proc: the open files of a process, or its working directory.
func namesIn(folder string) ([]string, error) {
	dir, err := os.Open(folder)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(maxDescriptors)
	if err == io.EOF {
		err = nil
	}
	return names, err
}

// mostCrashFiles limits how many crash files are read, the newest first.
const mostCrashFiles = 3

// CrashFiles reads the crash files (hs_err_pidN.log) in the working directory of a JVM, up to most bytes from the
// beginning of each. Only regular files that belong to the JVM's user and are no links count. So a JVM cannot make
// goprof read a file of another user.
func (h Host) CrashFiles(pid int, most int64) ([]Log, error) {
	return logsInTime(func() ([]Log, error) { return crashFiles(pid, most) })
}

func crashFiles(pid int, most int64) (logs []Log, err error) {
	stat, err := procfs.ReadStatus(pid, pid)
	if err != nil {
		return nil, err
	}
	names, err := namesIn(fmt.Sprintf("/proc/%d/cwd", pid))
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if ok, _ := path.Match("hs_err_pid*.log", name); !ok {
			continue
		}
		file, size, err := process.OpenInFolder(pid, name)
		if err != nil {
			continue
		}
		if info := ownedBy(file, stat.UID); info != nil {
			text, _ := io.ReadAll(io.LimitReader(file, most))
			logs = append(logs, Log{name, info.ModTime(), size, text})
		}
		file.Close()
		sort.Slice(logs, func(i, j int) bool {
			return cmp.Or(logs[j].Time.Compare(logs[i].Time), cmp.Compare(logs[i].Name, logs[j].Name)) < 0
		})
		logs = logs[:min(len(logs), mostCrashFiles)]
	}
	return logs, nil
}
