//go:build linux

package terminal

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

func TestDecode(t *testing.T) {
	pressed := func(input string) (names []string) {
		for b := []byte(input); len(b) > 0; {
			key, n := decode(b)
			if n == 0 {
				return append(names, "...")
			}
			names, b = append(names, key.Name), b[n:]
		}
		return names
	}
	for input, want := range map[string]string{
		"qG/?名":                   "q G / ? 名",
		"\r\t \x7f\x03\x15\x1a":   "enter tab space backspace ctrl+c ctrl+u ctrl+z",
		"\x1b[A\x1bOB\x1b[5~":     "up down pgup",
		"\x1b[H\x1b[F\x1b[6~":     "home end pgdown",
		"\x1b\x1b[Cx":             "esc right x",
		"\x1b[1;5A\x1bxy":         "  y", // with Ctrl, with Alt: not known
		"\x1b":                    "...",
		"\x1b[1;":                 "...",
		"\x1bO":                   "...",
		"x\xe5":                   "x ...",
		"\xffx":                   " x",
		"\x1b[?1;2c\x1b[200~x":    "  x", // answers and pasted text
		"\x1b[0;0;0;0;0;0;0;0;0;": "...",
	} {
		if got := strings.Join(pressed(input), " "); got != want {
			t.Errorf("%q: %q, not %q", input, got, want)
		}
	}
	if key, n := decode([]byte("\x1b[" + strings.Repeat("1", 100))); key.Name != "" || n != maxSequence {
		t.Errorf("an endless sequence is %q of %d bytes", key.Name, n)
	}
}

// FuzzDecode: whatever comes, each key has a length, and no text has a control character.
func FuzzDecode(f *testing.F) {
	f.Add([]byte("x\x1b[A\x1bO\xe5\x90\x8d"))
	f.Fuzz(func(t *testing.T, b []byte) {
		for len(b) > 0 {
			key, n := decode(b)
			if n < 0 || n > len(b) || n == 0 && len(b) >= maxSequence {
				t.Fatalf("%q has the length %d", b, n)
			}
			if strings.ContainsFunc(key.Text, func(r rune) bool { return r < ' ' || r == 0x7f }) {
				t.Fatalf("%q types %q", b, key.Text)
			}
			if n == 0 {
				return
			}
			b = b[n:]
		}
	})
}

// onPipe is a terminal whose output can be read.
func onPipe(t *testing.T) (*Terminal, func() string) {
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { read.Close(); write.Close() })
	written := func() string {
		b := make([]byte, 1<<16)
		n, _ := read.Read(b)
		return string(b[:n])
	}
	return &Terminal{in: read, out: write, wake: write, before: &term.State{}}, written
}

// TestDraw: only lines that have changed are written.
func TestDraw(t *testing.T) {
	shown, written := onPipe(t)
	shown.Draw([]string{"one", "two"})
	if got := written(); got != "\x1b[2J\x1b[1;1H\x1b[Kone\x1b[2;1H\x1b[Ktwo" {
		t.Errorf("the first: %q", got)
	}
	shown.Draw([]string{"one", "2"})
	if got := written(); got != "\x1b[2;1H\x1b[K2" {
		t.Errorf("the second: %q", got)
	}
	shown.Draw(slices.Repeat([]string{"x"}, assumedRows+5))
	if got := written(); strings.Contains(got, "\x1b[25;") || !strings.Contains(got, "\x1b[24;1H\x1b[Kx") {
		t.Errorf("too many lines: %q", got)
	}
}

// TestStopAndClose: the screen does not end during a stop. A stop after the end leaves the terminal alone.
func TestStopAndClose(t *testing.T) {
	shown, written := onPipe(t)
	closed := make(chan bool)
	shown.Stop(func() {
		go func() {
			shown.Close()
			close(closed)
		}()
		select {
		case <-closed:
			t.Error("it ended during a stop")
		case <-time.After(20 * time.Millisecond): // on a busy machine an error may stay unseen here, and nothing worse
		}
		if got := written(); got != Leave {
			t.Errorf("before the stop it wrote %q", got)
		}
	})
	<-closed
	stopped := false
	if !shown.Stop(func() { stopped = true }) || !stopped {
		t.Error("it did not stop after the end")
	}
}

// openTerminal makes a pseudo terminal.
func openTerminal(t *testing.T) (ours, theirs *os.File) {
	t.Helper()
	ours, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no pseudo terminals here: %v", err)
	}
	t.Cleanup(func() { ours.Close() })
	number, err := unix.IoctlGetInt(int(ours.Fd()), unix.TIOCGPTN)
	err = cmp.Or(err, unix.IoctlSetPointerInt(int(ours.Fd()), unix.TIOCSPTLCK, 0))
	if err == nil {
		theirs, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { theirs.Close() })
	return ours, theirs
}

// TestTakeFails: a terminal that cannot be drawn on stays as it was.
func TestTakeFails(t *testing.T) {
	_, theirs := openTerminal(t)
	before, err := unix.IoctlGetTermios(int(theirs.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	unwritable, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer unwritable.Close()
	if _, err := Open(theirs, unwritable); err == nil {
		t.Error("it can be drawn on")
	}
	if after, err := unix.IoctlGetTermios(int(theirs.Fd()), unix.TCGETS); err != nil || *after != *before {
		t.Errorf("the modes are %+v, were %+v (%v)", after, before, err)
	}
}

// inBackground runs the test as a job in the background of a terminal on which keys were typed. The job calls
// toForeground when it wants the terminal. inBackground returns what the job has written to it.
func inBackground(t *testing.T, typed string, job func(toForeground func())) string {
	t.Helper()
	self := func(role string, from, to *os.File, extra ...*os.File) *exec.Cmd {
		cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
		cmd.Env = append(os.Environ(), "ROLE_IN_TEST="+role)
		cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = from, to, os.Stderr, extra
		return cmd
	}
	switch os.Getenv("ROLE_IN_TEST") {
	case "job":
		job(func() {
			os.NewFile(4, "ready").WriteString("x")
			os.NewFile(3, "go on").Read(make([]byte, 1))
		})
		os.Exit(0)
	case "shell":
		signal.Ignore(unix.SIGTTOU)
		read, goOn, err := os.Pipe()
		ready, write, err2 := os.Pipe()
		job := self("job", os.Stdin, os.Stdout, read, write)
		job.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
		if cmp.Or(err, err2, job.Start()) != nil {
			os.Exit(1)
		}
		write.Close()
		ready.SetReadDeadline(time.Now().Add(time.Minute))
		if _, err := ready.Read(make([]byte, 1)); err != nil {
			os.Stderr.WriteString("the job has stopped or ended\n")
			os.Exit(1)
		}
		unix.IoctlSetPointerInt(0, unix.TIOCSPGRP, job.Process.Pid)
		goOn.WriteString("x")
		job.Wait()
		os.Exit(job.ProcessState.ExitCode())
	}
	ours, theirs := openTerminal(t)
	if _, err := term.MakeRaw(int(theirs.Fd())); err != nil {
		t.Fatal(err)
	}
	ours.WriteString(typed)
	shell := self("shell", theirs, theirs)
	shell.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := shell.Run(); err != nil {
		t.Error(err)
	}
	theirs.WriteString("\x00") // the job may have written nothing
	b := make([]byte, 1<<16)
	n, _ := ours.Read(b)
	return strings.TrimRight(string(b[:n]), "\x00")
}

// TestDrawInBackground: a job in the background does not draw. In the foreground it draws all.
func TestDrawInBackground(t *testing.T) {
	got := inBackground(t, "", func(toForeground func()) {
		shown := &Terminal{in: os.Stdin, out: os.Stdout}
		shown.Draw([]string{"one"})
		toForeground()
		shown.Draw([]string{"two"})
		shown.Draw([]string{"two", "three"})
	})
	want := enter + "\x1b[2J\x1b[1;1H\x1b[Ktwo" + "\x1b[2;1H\x1b[Kthree"
	if got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestKeysInBackground: a job in the background reads no keys, and goes on. In the foreground it has them.
func TestKeysInBackground(t *testing.T) {
	got := inBackground(t, "k", func(toForeground func()) {
		shown := &Terminal{in: os.Stdin, out: os.Stdout, keys: make(chan Key)}
		woken, _, err := os.Pipe()
		if err != nil {
			os.Exit(1)
		}
		go shown.readKeys(woken)
		select {
		case key, open := <-shown.keys:
			os.Stdout.WriteString("in the background: " + key.Name + strconv.FormatBool(open))
			os.Exit(1)
		case <-time.After(2 * backgroundTime):
		}
		toForeground()
		os.Stdout.WriteString((<-shown.keys).Name)
	})
	if got != "k" {
		t.Errorf("it read %q", got)
	}
}
