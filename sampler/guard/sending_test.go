//go:build linux

package guard

import (
	"errors"
	"fmt"
	"testing"

	"golang.org/x/sys/unix"
)

func init() { children["sending"] = childSending }

// childSending tries sockets behind the guard of a goprof that sends.
func childSending() {
	EnterSending(ToRecord)
	for name, family := range map[string]int{"inet": unix.AF_INET, "inet6": unix.AF_INET6, "unix": unix.AF_UNIX,
		"netlink": unix.AF_NETLINK, "packet": unix.AF_PACKET} {
		fd, err := unix.Socket(family, unix.SOCK_STREAM, 0)
		fmt.Printf("%s: %v\n", name, errors.Is(err, unix.EPERM))
		if err != nil {
			continue
		}
		address := &unix.SockaddrInet4{Port: 1, Addr: [4]byte{127, 0, 0, 1}}
		fmt.Printf("%s connects: %v\n", name, !errors.Is(unix.Connect(fd, address), unix.EPERM))
		fmt.Printf("%s binds: %v\n", name, !errors.Is(unix.Bind(fd, address), unix.EPERM))
		fmt.Printf("%s listens: %v\n", name, !errors.Is(unix.Listen(fd, 1), unix.EPERM))
	}
	err := unix.Exec("/bin/true", []string{"true"}, nil)
	fmt.Printf("exec: %v\n", errors.Is(err, unix.EPERM))
}

// TestSending: a goprof that sends may connect IP sockets. Everything else is as before: no other sockets, no
// listening, no programs.
func TestSending(t *testing.T) {
	said := runChild(t, "sending")
	for what, want := range map[string]string{"inet": "false", "inet6": "false", "unix": "true", "netlink": "true",
		"packet": "true", "inet connects": "true", "inet binds": "false", "inet listens": "false", "exec": "true"} {
		if said[what] != want {
			t.Errorf("%s: %q, want %s", what, said[what], want)
		}
	}
}
