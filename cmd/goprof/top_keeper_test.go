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

	"goprof/cmd/goprof/terminal"
	"goprof/session"
)

func init() { programs["drawer"] = drawer }

// drawer is a shell with a job that draws a screen. The job is killed before its watchdog can have seen the terminal
// as it was.
func drawer() {
	if len(os.Args) > 1 {
		modes := terminal.Modes()
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
