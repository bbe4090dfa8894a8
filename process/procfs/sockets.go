package procfs

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net/netip"
	"strconv"
)

// Socket is a line of /proc/PID/net/tcp or tcp6 (Documentation/networking/proc_net_tcp.rst).
type Socket struct {
	Local, Remote  netip.AddrPort
	State          string
	Unsent, Unread uint64
	Inode          uint64 // 0: no process has it open
}

// tcpStates are the numbers of include/net/tcp_states.h.
var tcpStates = [...]string{"", "ESTABLISHED", "SYN_SENT", "SYN_RECV", "FIN_WAIT1", "FIN_WAIT2", "TIME_WAIT", "CLOSE",
	"CLOSE_WAIT", "LAST_ACK", "LISTEN", "CLOSING", "NEW_SYN_RECV"}

// maxSocketFile bounds the bytes of a namespace's list of sockets, to about a hundred thousand sockets.
const maxSocketFile = 16 << 20

// EachTCP calls each for every TCP socket in the network namespace of a process.
func EachTCP(pid int, each func(Socket)) { eachSocketOf(pid, each, "net/tcp", "net/tcp6") }

// EachInternet calls each for every TCP and UDP socket in that namespace.
func EachInternet(pid int, each func(Socket)) {
	eachSocketOf(pid, each, "net/tcp", "net/tcp6", "net/udp", "net/udp6")
}

// Listening is the State of a socket that waits for connections.
const Listening = "LISTEN"

func eachSocketOf(pid int, each func(Socket), lists ...string) {
	for _, name := range lists {
		b, err := Read(fmt.Sprintf("/proc/%d/%s", pid, name), maxSocketFile)
		if err != nil {
			continue // a kernel without IPv6
		}
		EachSocket(b, each)
	}
}

// EachSocket calls each for every socket in the text of tcp or tcp6. It leaves out lines that do not parse.
func EachSocket(b []byte, each func(Socket)) {
	for line := range bytes.Lines(b) {
		if s, ok := parseSocket(line); ok {
			each(s)
		}
	}
}

// parseSocket reads a line:
//
//	sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
//	 0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1596 1 ...
func parseSocket(line []byte) (s Socket, ok bool) {
	f := bytes.Fields(line)
	const inode = 9
	if len(f) <= inode {
		return s, false
	}
	var ok2 bool
	s.Local, ok = hexAddress(f[1])
	s.Remote, ok2 = hexAddress(f[2])
	state, err := strconv.ParseUint(string(f[3]), 16, 8)
	if !ok || !ok2 || err != nil || state == 0 || state >= uint64(len(tcpStates)) {
		return s, false
	}
	s.State = tcpStates[state]
	tx, rx, _ := bytes.Cut(f[4], []byte(":"))
	var err2 error
	s.Unsent, err = strconv.ParseUint(string(tx), 16, 64)
	s.Unread, err2 = strconv.ParseUint(string(rx), 16, 64)
	s.Inode, ok = number(f[inode])
	return s, ok && err == nil && err2 == nil
}

// hexAddress reads "0100007F:1F90". The address is written as 32-bit words, each in this machine's byte order
// (net/ipv4/tcp_ipv4.c, get_tcp4_sock). The port is a plain number.
func hexAddress(b []byte) (a netip.AddrPort, ok bool) {
	host, port, ok := bytes.Cut(b, []byte(":"))
	var addr [16]byte
	if !ok || len(host) != 8 && len(host) != 32 {
		return a, false
	}
	for i := 0; i < len(host); i += 8 {
		n, err := strconv.ParseUint(string(host[i:i+8]), 16, 32)
		if err != nil {
			return a, false
		}
		binary.NativeEndian.PutUint32(addr[i/2:], uint32(n))
	}
	p, err := strconv.ParseUint(string(port), 16, 16)
	if err != nil {
		return a, false
	}
	if len(host) == 8 {
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte(addr[:4])), uint16(p)), true
	}
	return netip.AddrPortFrom(netip.AddrFrom16(addr).Unmap(), uint16(p)), true
}

// SocketInode reads the inode of a socket from a link of /proc/PID/fd: "socket:[1596]".
func SocketInode(link []byte) (uint64, bool) {
	rest, ok := bytes.CutPrefix(link, []byte("socket:["))
	if !ok {
		return 0, false
	}
	n, rest, ok := CutUint(rest)
	return n, ok && string(rest) == "]"
}
