//go:build linux

package examine

import (
	"net/netip"
	"slices"

	"goprof/profile"
	"goprof/session"
	"goprof/triage"
	"goprof/triage/vitals"
)

// connections counts the connections of the process. Connections to itself are left out.
type connections struct {
	opened   map[netip.AddrPort]int // by their other ends
	accepted int
}

// remotes finds the threads that wait in a system call for a connection that the process itself has opened, and counts
// all connections. It returns nil if that cannot be known.
func (x *examination) remotes(threads []profile.ThreadDump) (map[int]triage.Remote, error) {
	asked := slices.Clone(threads) // if the target does not answer, the examination continues with its own list
	waits, err := session.Ask(x.session, func() (map[int]int, error) {
		return x.session.Descriptors(asked), nil // the descriptors of poll are read from the target's memory
	})
	if err != nil {
		return nil, err
	}
	x.opened = connections{}
	sockets, err := x.vitals.Sockets()
	if err != nil {
		return nil, nil // the files of /proc/PID/net cannot be read, and the rules say so
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
