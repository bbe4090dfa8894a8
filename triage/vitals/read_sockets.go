//go:build linux

package vitals

import (
	"io"
	"os"
	"sort"
	"strconv"

	"goprof/process"
	"goprof/process/procfs"
)

// MaxSockets limits what Sockets returns.
const MaxSockets = 1 << 14

// Sockets returns the process's TCP sockets, lowest descriptor first: those with the given descriptors, or all if none
// are given. At most MaxSockets are read. With thousands of sockets it costs more than Read.
//
// It finds only sockets of the process's present network namespace. A socket that the process made in another
// namespace, or received from a process there, is missing.
func (v *Vitals) Sockets(fds ...int) ([]Socket, error) {
	if len(fds) == 0 {
		var err error
		if fds, err = v.descriptors(); err != nil {
			return nil, err
		}
	}
	byInode := map[uint64][]int{}
	for _, fd := range fds[:min(len(fds), maxDescriptors)] {
		if inode, ok := procfs.SocketInode(v.dir.FileLink(uint64(fd))); ok && fd >= 0 {
			byInode[inode] = append(byInode[inode], fd)
		}
	}
	if len(byInode) == 0 {
		return nil, v.p.Alive()
	}
	var found []Socket
	procfs.EachTCP(v.p.PID(), func(s procfs.Socket) {
		for _, fd := range byInode[s.Inode] {
			if len(found) < MaxSockets {
				found = append(found, Socket{FD: fd, Local: s.Local, Remote: s.Remote, State: s.State,
					Unsent: s.Unsent, Unread: s.Unread})
			}
		}
	})
	sort.Slice(found, func(i, j int) bool { return found[i].FD < found[j].FD })
	return found, v.p.Alive()
}

// descriptors lists the process's open descriptors.
func (v *Vitals) descriptors() (fds []int, err error) {
	dir, err := os.Open(v.file("fd"))
	if err != nil {
		if alive := v.p.Alive(); alive != nil {
			return nil, alive
		}
		return nil, err
	}
	defer dir.Close()
	for len(fds) < maxDescriptors {
		names, err := dir.Readdirnames(1024)
		for _, name := range names {
			if fd, err := strconv.Atoi(name); err == nil {
				fds = append(fds, fd)
			}
		}
		if err == io.EOF || len(names) == 0 {
			return fds, nil
		}
		if err != nil {
			return nil, process.ErrGone
		}
	}
	return fds, nil
}
