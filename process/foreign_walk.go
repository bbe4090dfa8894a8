//go:build linux

package process

import (
	"strings"

	"golang.org/x/sys/unix"
)

const (
	maxWalkLinks = 40   // the kernel's own limit (include/linux/namei.h, MAXSYMLINKS)
	maxWalkNames = 4096 // names of a path, including those of the links on the way
)

// foreignWalk follows a path name by name, by the rules of openat2 with RESOLVE_IN_ROOT and RESOLVE_NO_MAGICLINKS. It
// is for kernels and seccomp filters without openat2.
//
// At ".." the walk returns to the parent's descriptor. So it cannot leave the root, even if a folder is moved during
// the walk. The walk reads and follows links itself: the kernel follows none.
type foreignWalk struct {
	root  int
	below []int // the descriptors of the names from root to the present one
	names []string
	links int
	file  bool // the walk has reached something that is not a folder
}

// walkForeign returns a descriptor that names the file at path below root.
func walkForeign(root int, path string) (int, error) {
	w := foreignWalk{root: root, names: strings.Split(path, "/")}
	defer func() { w.leave(0) }()
	for steps := 0; len(w.names) > 0; steps++ {
		if steps == maxWalkNames {
			return -1, unix.ELOOP
		}
		name := w.names[0]
		w.names = w.names[1:]
		var err error
		switch {
		case w.file:
			err = unix.ENOTDIR
		case name == "..":
			w.leave(max(len(w.below)-1, 0))
		case name != "" && name != ".":
			err = w.enter(name)
		}
		if err != nil {
			return -1, err
		}
	}
	return unix.FcntlInt(uintptr(w.at()), unix.F_DUPFD_CLOEXEC, 0)
}

// at returns the descriptor of the folder or file that the walk has reached.
func (w *foreignWalk) at() int {
	if n := len(w.below); n > 0 {
		return w.below[n-1]
	}
	return w.root
}

// enter goes to a name. If the name is a link, it inserts the link's path before the remaining names.
func (w *foreignWalk) enter(name string) error {
	fd, err := unix.Openat(w.at(), name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFLNK {
		w.below, w.file = append(w.below, fd), st.Mode&unix.S_IFMT != unix.S_IFDIR
		return err
	}
	defer unix.Close(fd)
	target := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(fd, "", target)
	if w.links++; w.links > maxWalkLinks || isKernels(fd) { // links of /proc lead out of the root
		err = unix.ELOOP
	}
	if err != nil {
		return err
	}
	if n > 0 && target[0] == '/' {
		w.leave(0)
	}
	w.names = append(strings.Split(string(target[:n]), "/"), w.names...)
	return nil
}

// leave goes up to the folder that lies names levels below root.
func (w *foreignWalk) leave(names int) {
	for _, fd := range w.below[names:] {
		unix.Close(fd)
	}
	w.below = w.below[:names]
}
