//go:build linux

package main

import (
	"bytes"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"goprof/session"
)

func init() { programs["drawer"] = drawer }

// drawer is a shell with a job that draws a screen. The job is killed before its watchdog can have seen the terminal
// as it was.
func drawer() {
	if len(os.Args) > 1 {
		modes := terminalModes()
		term.MakeRaw(0)
		os.Stdout.WriteString("\x1b[?1049h\x1b[?25l")
		os.Args[0] = "goprof" // the name under which the watchdog is started
		session.StartWatchdog(watchdogName, watchdogTerminal+modes)
		unix.Kill(os.Getpid(), unix.SIGKILL)
		select {}
	}
	signal.Ignore(unix.SIGTTOU)
	job := exec.Command("drawer", "job")
	job.Stdin, job.Stdout, job.Stderr = os.Stdin, os.Stdout, os.Stderr
	job.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Foreground: true, Ctty: 0}
	job.Run()
	time.Sleep(time.Hour) // the terminal is the session's: the test ends it
}

// TestTerminalKept: a terminal was drawn on before the watchdog began. The watchdog restores it.
func TestTerminalKept(t *testing.T) {
	s := startProgram(t, 80, 24, nil, nil, "drawer")
	s.awaitThat("another screen", func(string) bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return bytes.Contains(s.raw, []byte("\x1b[?1049h"))
	})
	s.isRestored()
}

// TestTerminalModes: the watchdog makes of a terminal what goprof has noted of it, although the screen has changed
// the terminal before the watchdog begins. The watchdog believes no other text.
func TestTerminalModes(t *testing.T) {
	want := unix.Termios{Iflag: 1, Oflag: 2, Cflag: 3, Lflag: unix.ICANON | unix.ISIG, Line: 4, Ispeed: 5, Ospeed: 6}
	want.Cc[3] = 7
	got, ok := modesOf(modesText(&want))
	if !ok || *got != want {
		t.Errorf("%v %+v, not %+v", ok, got, want)
	}
	for _, text := range []string{"", "x", "00", modesText(&want) + "00"} {
		if _, ok := modesOf(text); ok {
			t.Errorf("%q is believed", text)
		}
	}
}
