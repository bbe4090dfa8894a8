//go:build linux

package guard

import (
	"os"
	"path/filepath"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Files are the files of a goprof that looks at no process: recordings, core files, crash files. Other users may have
// made them. So goprof keeps only the capabilities that it needs to read them.
type Files struct {
	// Read are files and folders. Write are files that need not exist yet. An empty name means no file.
	Read, Write []string
	// Sends: goprof sends what it reads to servers.
	Sends bool
}

// EnterFiles gives up all capabilities, and the system calls that look at processes. It keeps CAP_DAC_READ_SEARCH if
// goprof's user may not read one of the files. It keeps CAP_DAC_OVERRIDE and CAP_FOWNER if that user may not write to
// one of the folders.
func EnterFiles(f Files) Given { return enter(f.keep(), purpose{sends: f.Sends}) }

// keep finds out which capabilities the files need. An OS thread without capabilities asks the kernel about each file.
func (f *Files) keep() (k Keep) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	have, err := capabilities()
	if err != nil || have.effective == 0 || setCapabilities(capset{permitted: have.permitted}) != nil {
		return nil
	}
	defer setCapabilities(have)
	if f.needsToRead() {
		k = append(k, unix.CAP_DAC_READ_SEARCH)
	}
	if f.needsToWrite() {
		k = append(k, unix.CAP_DAC_OVERRIDE, unix.CAP_FOWNER)
	}
	return k
}

// setCapabilities sets the capabilities of this OS thread alone.
func setCapabilities(c capset) error {
	header, want := c.words()
	_, _, e := unix.RawSyscall(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&want[0])), 0)
	if e != 0 {
		return e
	}
	return nil
}

func (f *Files) needsToRead() bool {
	for _, name := range f.Read {
		mode := uint32(unix.R_OK)
		if st, err := os.Stat(name); err == nil && st.IsDir() {
			mode |= unix.X_OK
		}
		if name != "" && refused(name, mode) {
			return true
		}
	}
	return false
}

// needsToWrite reports whether writing the files needs capabilities. A file is written under another name in the same
// folder and then renamed. A pipe or a device is opened.
func (f *Files) needsToWrite() bool {
	for _, name := range f.Write {
		if name == "" {
			continue
		}
		at, mode := filepath.Dir(name), uint32(unix.W_OK|unix.X_OK)
		st, err := os.Lstat(name)
		switch {
		case err == nil && st.IsDir(): // the results go into this folder
			at = name
		case err == nil && !st.Mode().IsRegular():
			at, mode = name, unix.W_OK
		}
		if refused(at, mode) || err == nil && at != name && keptByOwner(name) {
			return true
		}
	}
	return false
}

// keptByOwner reports whether goprof needs CAP_FOWNER to replace a file: the folder is sticky, and goprof's user owns
// neither the file nor the folder (fs/namei.c, __check_sticky).
func keptByOwner(name string) bool {
	var file, folder unix.Stat_t
	if unix.Lstat(name, &file) != nil || unix.Stat(filepath.Dir(name), &folder) != nil ||
		folder.Mode&unix.S_ISVTX == 0 {
		return false
	}
	own := uint32(unix.Geteuid())
	return file.Uid != own && folder.Uid != own
}

// refused reports whether the kernel refuses such access to this OS thread. A kernel that cannot be asked (faccessat2
// came with Linux 5.8) counts as one that refuses. If the file does not exist, goprof need not keep a capability for
// it.
func refused(name string, mode uint32) bool {
	path, err := unix.BytePtrFromString(name)
	if err != nil {
		return false
	}
	at := unix.AT_FDCWD
	_, _, e := unix.Syscall6(unix.SYS_FACCESSAT2, uintptr(at), uintptr(unsafe.Pointer(path)), uintptr(mode),
		unix.AT_EACCESS, 0, 0)
	switch e {
	case 0, unix.ENOENT, unix.ENOTDIR, unix.ENAMETOOLONG, unix.ELOOP, unix.EROFS:
		return false
	}
	return true
}
