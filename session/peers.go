//go:build linux

package session

import (
	"encoding/binary"
	"slices"
	"strings"

	"goprof/arch"
	"goprof/process/procfs"
	"goprof/profile"
)

// Peers notes in each thread the other end of the TCP connection that the thread waits for in a system call, if it is
// known. Connections in other network namespaces than the process's are not known.
func (s *Session) Peers(threads []profile.ThreadDump) error {
	asked := slices.Clone(threads) // the caller may use its own if the target does not answer
	told, err := Ask(s, func() (map[int]int, error) { return s.Descriptors(asked), nil })
	if err != nil {
		return err
	}
	dir := procfs.OpenDir(s.Process.PID())
	defer dir.Close()
	waits := map[uint64][]int{} // by the inodes of their sockets
	for tid, fd := range told {
		if inode, ok := procfs.SocketInode(dir.FileLink(uint64(fd))); ok {
			waits[inode] = append(waits[inode], tid)
		}
	}
	peers := map[int]string{}
	procfs.EachTCP(s.Process.PID(), func(k procfs.Socket) {
		for _, tid := range waits[k.Inode] {
			if k.Remote.IsValid() && k.Remote.Port() != 0 {
				peers[tid] = k.Remote.String()
			}
		}
	})
	for i := range threads {
		if t := &threads[i]; t.TID != 0 {
			t.Peer = peers[t.TID]
		}
	}
	return s.Process.Alive()
}

// Descriptors returns, by tid, the descriptors of the sockets that threads wait for in a system call.
func (s *Session) Descriptors(threads []profile.ThreadDump) map[int]int {
	dir := procfs.OpenDir(s.Process.PID())
	defer dir.Close()
	found := map[int]int{}
	for i := range threads {
		tid := threads[i].TID
		if tid == 0 {
			continue
		}
		number, args, _, _, ok := procfs.ParseSyscall(dir.Read(tid, "syscall"))
		if !ok {
			continue // it is running
		}
		fd, ok := s.descriptor(s.Process.CPU().Calls[number], args[0], args[1])
		if ok && strings.HasPrefix(string(dir.FileLink(uint64(fd))), "socket:[") {
			found[tid] = fd
		}
	}
	return found
}

// descriptor returns the descriptor that a system call waits for. first and second are the call's first arguments.
func (s *Session) descriptor(call arch.Call, first, second uint64) (fd int, ok bool) {
	switch call {
	case arch.CallRead, arch.CallWrite, arch.CallConnect, arch.CallReceive, arch.CallSend:
		return int(int32(first)), int32(first) >= 0
	case arch.CallPoll:
		// The argument is an array of struct pollfd, whose first member is the descriptor. Java polls one at a time
		// (sun.nio.ch.Net.poll).
		var b [4]byte
		if second != 1 || s.Process.Read(first, b[:]) != nil {
			return 0, false
		}
		fd := int32(binary.NativeEndian.Uint32(b[:]))
		return int(fd), fd >= 0
	}
	return 0, false
}
