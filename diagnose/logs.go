//go:build linux

package diagnose

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"goprof/process/procfs"
)

// Log is a file that a JVM writes.
type Log struct {
	Name string // its last element
	Time time.Time
	Size int64
	Text []byte // its end, or its beginning
}

// maxDescriptors bounds how many open files of a process are looked at.
const maxDescriptors = 1 << 16

// GCLogs reads the ends of the logs of garbage collection that a JVM writes, up to most bytes of each. args are the
// JVM's own arguments. A log is found among the files that the process holds open for writing, so a JVM cannot name
// a file here that it may not write to. Nothing is opened by its path.
func (h Host) GCLogs(pid int, args []string, most int64) (logs []Log, err error) {
	patterns := gcLogNames(args)
	if len(patterns) == 0 {
		return nil, nil
	}
	folder := fmt.Sprintf("/proc/%d/fd", pid)
	dir, err := os.Open(folder)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(maxDescriptors)
	if err != nil && err != io.EOF {
		return nil, err
	}
	for _, fd := range names {
		target, err := os.Readlink(filepath.Join(folder, fd))
		base := path.Base(target)
		if err != nil || !fitsLog(patterns, base) || !writable(pid, fd) {
			continue
		}
		// To open a device may have an effect: the descriptor is asked first.
		if info, err := os.Stat(filepath.Join(folder, fd)); err != nil || !info.Mode().IsRegular() {
			continue
		}
		file, info, err := openRegular(func() (*os.File, error) {
			return os.OpenFile(filepath.Join(folder, fd), os.O_RDONLY|unix.O_NONBLOCK, 0)
		})
		if err != nil {
			return logs, err
		}
		text := make([]byte, min(most, info.Size()))
		n, err := file.ReadAt(text, info.Size()-int64(len(text)))
		file.Close()
		if err != nil && err != io.EOF {
			return logs, err
		}
		logs = append(logs, Log{base, info.ModTime(), info.Size(), text[:n]})
	}
	if len(logs) == 0 {
		return nil, errors.New("the JVM was told to write one, and holds none open")
	}
	return logs, nil
}

// fitsLog reports whether a file has such a name. JDK 8 adds a number to it, and "current", where it rotates logs.
func fitsLog(patterns []string, base string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		fits, _ := path.Match(p, base)
		numbered, _ := path.Match(p+".*", base)
		return fits || numbered
	})
}

// literally makes a pattern of a name: characters that mean something in patterns mean themselves, and the pid and the
// time may be anything.
var literally = strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`, "%p", "*", "%t", "*", "%hn", "*")

// gcLogNames are patterns of the names of files to which a JVM logs its collections: of -Xlog:gc*:file=NAME (JDK 9 and
// later; share/logging/logConfiguration.cpp, logFileOutput.cpp) and -Xloggc:NAME.
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

// openRegular opens a file that is regular.
func openRegular(open func() (*os.File, error)) (*os.File, fs.FileInfo, error) {
	file, err := open()
	if err != nil {
		return nil, nil, err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("it is no regular file")
	}
	if err != nil {
		file.Close()
		return nil, nil, err
	}
	return file, info, nil
}

// mostCrashFiles is how many crash files are read, the newest first.
const mostCrashFiles = 3

// CrashFiles reads the beginnings of the files that crashed JVMs have left in the working directory of a JVM
// (hs_err_pidN.log), up to most bytes of each. Only regular files count that belong to the user of the JVM and are no
// links, so a JVM cannot have goprof read a file of another user.
func (h Host) CrashFiles(pid int, most int64) (logs []Log, err error) {
	stat, err := procfs.ReadStatus(pid, pid)
	if err != nil {
		return nil, err
	}
	cwd, err := os.OpenRoot(fmt.Sprintf("/proc/%d/cwd", pid))
	if err != nil {
		return nil, err
	}
	defer cwd.Close()
	dir, err := cwd.Open(".")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(maxDescriptors)
	if err != nil && err != io.EOF {
		return nil, err
	}
	for _, name := range names {
		if ok, _ := path.Match("hs_err_pid*.log", name); !ok {
			continue
		}
		file, info, err := openRegular(func() (*os.File, error) {
			return cwd.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0)
		})
		if err != nil {
			continue
		}
		if st, ok := info.Sys().(*syscall.Stat_t); ok && int(st.Uid) == stat.UID {
			logs = append(logs, Log{name, info.ModTime(), info.Size(), nil})
			logs[len(logs)-1].Text, _ = io.ReadAll(io.LimitReader(file, most))
		}
		file.Close()
		slices.SortFunc(logs, func(a, b Log) int { return cmp.Or(b.Time.Compare(a.Time), cmp.Compare(a.Name, b.Name)) })
		logs = logs[:min(len(logs), mostCrashFiles)]
	}
	return logs, nil
}
