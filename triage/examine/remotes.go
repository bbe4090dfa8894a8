//go:build linux

package examine

import (
	"encoding/binary"
	"net/netip"
	"strings"

	"goprof/arch"
	"goprof/process/procfs"
	"goprof/profile"
	"goprof/session"
	"goprof/triage"
	"goprof/triage/vitals"
)

// connections counts the connections of the process, without those to itself.
type connections struct {
	opened   map[netip.AddrPort]int // by their other ends
	accepted int
}

// remotes finds the threads that wait in a system call for a connection that the process itself has opened, and counts
// all connections. Nil: that cannot be known here.
func (x *examination) remotes(threads []profile.ThreadDump) (map[int]triage.Remote, error) {
	waits, err := session.Ask(x.session, func() (map[int]int, error) {
		return x.descriptors(threads), nil // what poll waits for is read from its memory
	})
	if err != nil {
		return nil, err
	}
	x.opened = connections{}
	sockets, err := x.vitals.Sockets()
	if err != nil {
		return nil, nil // the files of /proc/PID/net cannot be read: rules say that it is not known
	}
	listens, own := map[uint16]bool{}, map[netip.AddrPort]bool{}
	for i := range sockets {
		own[sockets[i].Local] = true
		if sockets[i].State == listening {
			listens[sockets[i].Local.Port()] = true
		}
	}
	x.opened = connections{opened: map[netip.AddrPort]int{}}
	opened := map[int]*vitals.Socket{}
	for i := range sockets {
		s := &sockets[i]
		switch {
		case s.State == listening || !s.Remote.IsValid() || s.Remote.Port() == 0:
		case !listens[s.Local.Port()]:
			opened[s.FD] = s
			if !own[s.Remote] {
				x.opened.opened[s.Remote]++
			}
		case !own[s.Remote]: // a client's connection has the port on which the process listens
			x.opened.accepted++
		}
	}
	found := map[int]triage.Remote{}
	for tid, fd := range waits {
		if s := opened[fd]; s != nil {
			found[tid] = triage.Remote{Address: s.Remote, State: s.State}
		}
	}
	return found, nil
}

// listening is the state of a socket that waits for clients.
const listening = "LISTEN"

// descriptors tells for which descriptor threads wait in a system call, if it is a socket's.
func (x *examination) descriptors(threads []profile.ThreadDump) map[int]int {
	dir := procfs.OpenDir(x.session.Process.PID())
	defer dir.Close()
	found := map[int]int{}
	for i := range threads {
		tid := threads[i].TID
		if tid == 0 {
			continue
		}
		number, args, _, _, ok := procfs.ParseSyscall(dir.Read(tid, "syscall"))
		if !ok {
			continue // it runs
		}
		fd, ok := x.descriptor(x.session.Process.CPU().Calls[number], args[0], args[1])
		if ok && strings.HasPrefix(string(dir.FileLink(uint64(fd))), "socket:[") {
			found[tid] = fd
		}
	}
	return found
}

// descriptor is what a call with these arguments waits for.
func (x *examination) descriptor(call arch.Call, first, second uint64) (fd int, ok bool) {
	switch call {
	case arch.CallRead, arch.CallWrite, arch.CallConnect, arch.CallReceive, arch.CallSend:
		return int(int32(first)), int32(first) >= 0
	case arch.CallPoll:
		// An array of struct pollfd, whose first member is the descriptor. Java polls one at a time (sun.nio.ch.Net.poll).
		var b [4]byte
		if second != 1 || x.session.Process.Read(first, b[:]) != nil {
			return 0, false
		}
		fd := int32(binary.NativeEndian.Uint32(b[:]))
		return int(fd), fd >= 0
	}
	return 0, false
}
