//go:build linux

package process

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestSleepsIn reads lines of /proc/TID/syscall of x86-64 and arm64, named by the call.
func TestSleepsIn(t *testing.T) {
	link := func(name string) (string, error) {
		switch name {
		case "/proc/self/fd/5":
			return "/proc/77/maps", nil
		case "/proc/self/fd/6":
			return "pipe:[123]", nil
		}
		return "", errors.New("no such descriptor")
	}
	number := strconv.Itoa
	for line, want := range map[string]bool{
		"running\n":          false,
		"":                   false,
		"-1 0x7ffd 0x7f12\n": false,
		number(unix.SYS_PROCESS_VM_READV) + " 0x1 0xc00001 0x1 0xc0 0x1 0x0 0x7ffd 0x47\n": true,
		number(unix.SYS_OPENAT) + " 0xffffff9c 0xc0 0x0 0x0 0x0 0x0 0x7ffd 0x47\n":         true,
		number(unix.SYS_FUTEX) + " 0xc0 0x80 0x0 0x0 0x0 0x0 0x7ffd 0x47\n":                false,
		number(unix.SYS_READ) + " 0x5 0xc0 0x10 0x0 0x0 0x0 0x7ffd 0x47\n":                 true,
		number(unix.SYS_READ) + " 0x6 0xc0 0x10 0x0 0x0 0x0 0x7ffd 0x47\n":                 false,
		number(unix.SYS_READ) + " 0x7 0xc0 0x10 0x0 0x0 0x0 0x7ffd 0x47\n":                 false,
	} {
		if got := sleepsIn(line, link); got != want {
			t.Errorf("%q: %v", line, got)
		}
	}
}

// TestStarvedIsNotSilent: a process is not silent if its calls do not return because goprof gets no CPU. It is silent
// if a call sleeps.
func TestStarvedIsNotSilent(t *testing.T) {
	until := func(want bool) {
		t.Helper()
		for end := time.Now().Add(time.Minute); CallSleeps() != want; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("a call sleeps: %v", !want)
			}
		}
	}
	until(false)
	var c calls
	c.begin()
	w := &CallWatch{calls: &c}
	for range 100 {
		if w.Look(3) {
			t.Fatal("no call sleeps, and the process is given up")
		}
	}
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	opened := make(chan *os.File)
	go func() { // sleeps until another process opens the other end
		f, _ := os.Open(fifo)
		opened <- f
	}()
	until(true)
	if !w.Look(3) {
		t.Error("a call sleeps, and the process is not given up")
	}
	other, err := os.OpenFile(fifo, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	other.Close()
	if f := <-opened; f != nil {
		f.Close()
	}
}
