//go:build linux

package ptrace

import (
	"testing"

	"golang.org/x/sys/unix"
)

// The watchdog looks only while goprof may hold threads. It leaves a goprof alone that has announced that it stops.
func TestWatchdogHears(t *testing.T) {
	for _, c := range []struct {
		words           string
		watches, proper bool
	}{
		{"h", true, false},
		{"hn", false, false},
		{"hnh", true, false},
		{"hs", true, true}, // goprof holds no thread just now, but will again
		{"hsc", true, false},
		{"s", false, true},
	} {
		var fds [2]int
		if err := unix.Pipe2(fds[:], unix.O_NONBLOCK|unix.O_CLOEXEC); err != nil {
			t.Fatal(err)
		}
		unix.Write(fds[1], []byte(c.words))
		d := dog{from: fds[0]}
		d.await() // goprof has sent something
		if d.listen(); d.watches != c.watches || d.proper != c.proper || d.ended {
			t.Errorf("%s: watches %v, proper %v, ended %v", c.words, d.watches, d.proper, d.ended)
		}
		unix.Close(fds[1])
		d.await()
		if d.listen(); !d.ended {
			t.Errorf("%s: the end of goprof was not noticed", c.words)
		}
		unix.Close(fds[0])
	}
}

// The watchdog is told when the first OS thread that may hold threads begins, and when the last one has ended.
func TestHoldersAreTold(t *testing.T) {
	var told []byte
	tell := func(what byte) { told = append(told, what) }
	tellWatchdog.Store(&tell)
	defer tellWatchdog.Store(nil)
	OnOwnThread(func() {
		OnOwnThread(func() {})
	})
	OnOwnThread(func() {})
	if string(told) != "hnhn" {
		t.Errorf("told %q", told)
	}
}
