//go:build unix

package outfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A stream is opened when it is reserved and stays open: goprof writes to what it has checked.

// readerEvery is the time between two checks whether a pipe has a reader.
const readerEvery = 20 * time.Millisecond

// isForeign reports whether a file, a pipe or anything else belongs to another user, in a folder where all users may
// put files (/tmp). This is the kernel's own rule for names that are opened with O_CREAT there (fs/namei.c,
// may_create_in_sticky). The kernel does not apply it to names that are opened without O_CREAT: then the owner of a
// pipe would get the output, and goprof would replace another user's file.
func isForeign(in *os.Root, info fs.FileInfo) bool {
	folder, err := in.Stat(".")
	if err != nil || folder.Mode()&fs.ModeSticky == 0 || folder.Mode().Perm()&0o022 == 0 {
		return false
	}
	owner, ok := uid(info)
	host, ok2 := uid(folder)
	return ok && ok2 && owner != os.Geteuid() && owner != host
}

func uid(info fs.FileInfo) (int, bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return int(st.Uid), true
}

func ownedBy(info fs.FileInfo) string {
	owner, ok := uid(info)
	if ok && owner == os.Geteuid() {
		return "your own"
	}
	return "user " + strconv.Itoa(owner) + "'s"
}

// openStream opens a pipe or a device with this info. Opening never blocks: goprof tries to open a pipe until it has a
// reader, for readerWait.
func openStream(folder *os.Root, name string, info fs.FileInfo) (*os.File, error) {
	switch info.Mode().Type() {
	case fs.ModeNamedPipe, fs.ModeDevice | fs.ModeCharDevice:
	case fs.ModeSocket:
		return nil, errors.New("it is a socket")
	case fs.ModeDevice:
		return nil, errors.New("it is a disk, and goprof would write over what is on it")
	default:
		return nil, errors.New("it is neither a file nor a pipe")
	}
	file, err := openUntilRead(folder, name)
	if err != nil {
		return nil, err
	}
	if now, err := file.Stat(); err != nil || !os.SameFile(now, info) {
		return nil, errors.Join(errors.New("it was replaced meanwhile"), file.Close())
	}
	return file, nil
}

// openUntilRead opens for writing. The kernel answers ENXIO for a pipe without a reader (fifo(7)).
func openUntilRead(folder *os.Root, name string) (*os.File, error) {
	for began := time.Now(); ; time.Sleep(readerEvery) {
		file, err := folder.OpenFile(name, os.O_WRONLY|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		switch {
		case err == nil:
			return file, nil
		case !errors.Is(err, unix.ENXIO):
			return nil, err
		case time.Since(began) > readerWait:
			return nil, ErrNoReader
		}
	}
}

// isInherited recognises the names of descriptors that goprof was started with: /dev/stdout, and /dev/fd/63 for the
// shell's >(program). These names are links of the kernel to files that the starting program has opened. So goprof need
// not open them. A descriptor that closes at exec is one of goprof's own, and does not count.
func (f *File) isInherited() bool {
	number, ok := descriptor(f.name)
	switch {
	case !ok:
		return false
	case number == 1:
		f.name = Stdout
		return true
	case number == 2:
		f.stream = os.Stderr
		return true
	}
	flags, err := unix.FcntlInt(uintptr(number), unix.F_GETFD, 0)
	mode, err2 := unix.FcntlInt(uintptr(number), unix.F_GETFL, 0)
	if err != nil || err2 != nil || flags&unix.FD_CLOEXEC != 0 || mode&unix.O_ACCMODE == unix.O_RDONLY {
		return false
	}
	unix.CloseOnExec(number) // so that programs that goprof starts do not hold it open
	f.stream = os.NewFile(uintptr(number), f.name)
	return f.stream != nil
}

func descriptor(name string) (int, bool) {
	switch name {
	case "/dev/stdout":
		return 1, true
	case "/dev/stderr":
		return 2, true
	}
	for _, folder := range []string{"/dev/fd/", "/proc/self/fd/", fmt.Sprintf("/proc/%d/fd/", os.Getpid())} {
		if rest, ok := strings.CutPrefix(name, folder); ok {
			n, err := strconv.Atoi(rest)
			return n, err == nil && n > 0 && strconv.Itoa(n) == rest
		}
	}
	return 0, false
}
