//go:build linux

package process

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// A target controls the paths and the kinds of its files. So goprof opens each file that a target names with
// openForeign only (TestOneWayToOpen).

var (
	errNotRegular = errors.New("process: not a regular file")
	errTooLarge   = errors.New("process: the file is larger than it may be")
)

const (
	// hostRoot is goprof's own root. goprof opens only files there whose names it has made itself (from a build id).
	hostRoot = "/"
	// kernelLink stands for a path that is a link in /proc, made by the kernel for one file. No process can change the
	// link.
	kernelLink = ""
)

// OpenKernelLink opens the regular file behind a link of /proc such as /proc/PID/exe. The link leads to the file that
// the process has mapped, wherever that file is.
func OpenKernelLink(link string) (*os.File, int64, error) { return openForeign(kernelLink, link) }

// OpenInside opens a file by its path in a process's root, for example a container's configuration.
func OpenInside(pid int, path string) (*os.File, int64, error) {
	return openForeign(fmt.Sprintf("/proc/%d/root", pid), path)
}

// ReadInside reads a file by its path in a process's root. It returns an error if the file has more than most bytes.
func ReadInside(pid int, path string, most int) ([]byte, error) {
	f, _, err := OpenInside(pid, path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, int64(most)+1))
	if err == nil && len(b) > most {
		err = errTooLarge
	}
	return b, err
}

// OpenInFolder opens a file by its name in the working directory of a process.
func OpenInFolder(pid int, name string) (*os.File, int64, error) {
	return openForeign(fmt.Sprintf("/proc/%d/cwd", pid), name)
}

// openForeign opens a regular file for reading. Links, ".." and absolute paths stay below root (RESOLVE_IN_ROOT). Links
// of /proc, which could lead out of it, are refused (RESOLVE_NO_MAGICLINKS). goprof opens the file twice. The first
// descriptor only names the file (O_PATH). goprof uses it to check that this is a regular file, because opening a pipe
// may block, and opening a device may have effects. The second descriptor, for reading, is opened through the first. So
// the file cannot be replaced in between.
func openForeign(root, path string) (*os.File, int64, error) {
	fd, err := findForeign(root, path)
	if err != nil {
		return nil, 0, err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, 0, err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG || isKernels(fd) {
		return nil, 0, errNotRegular
	}
	f, err := reopen(fd, unix.O_NONBLOCK|unix.O_NOCTTY)
	if err != nil {
		return nil, 0, err
	}
	return f, st.Size, nil
}

// ListInside returns up to most names in a folder in a process's root.
func ListInside(pid int, folder string, most int) ([]string, error) {
	fd, err := findForeign(fmt.Sprintf("/proc/%d/root", pid), folder)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	f, err := reopen(fd, unix.O_DIRECTORY)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	names, err := f.Readdirnames(most)
	if errors.Is(err, io.EOF) { // an empty folder
		err = nil
	}
	return names, err
}

// reopen opens the file that fd names (O_PATH) for reading.
func reopen(fd, flags int) (*os.File, error) {
	return os.OpenFile("/proc/self/fd/"+strconv.Itoa(fd), os.O_RDONLY|unix.O_CLOEXEC|flags, 0)
}

// openat2 is a variable so that tests can replace it.
var openat2 = unix.Openat2

// findForeign returns a descriptor that names the file but does not open it.
func findForeign(root, path string) (int, error) {
	if root == kernelLink {
		return unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	}
	dir, err := unix.Open(root, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	defer unix.Close(dir)
	fd, err := openat2(dir, path, &unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS,
	})
	if err == unix.ENOSYS || err == unix.EPERM { // Linux before 5.6, or a seccomp filter
		fd, err = walkForeign(dir, path)
	}
	if err != nil {
		return -1, fmt.Errorf("process: open %q in a root: %w", path, err)
	}
	return fd, nil
}

// isKernels reports whether a file is in a file system whose contents the kernel makes at each read. Such a read may
// block (trace_pipe), take data from other readers (kmsg) or never end.
func isKernels(fd int) bool {
	var fs unix.Statfs_t
	if unix.Fstatfs(fd, &fs) != nil {
		return true
	}
	switch fs.Type {
	case unix.PROC_SUPER_MAGIC, unix.SYSFS_MAGIC, unix.TRACEFS_MAGIC, unix.DEBUGFS_MAGIC, unix.SECURITYFS_MAGIC,
		unix.CGROUP_SUPER_MAGIC,
		unix.CGROUP2_SUPER_MAGIC, unix.BPF_FS_MAGIC, unix.PSTOREFS_MAGIC:
		return true
	}
	return false
}
