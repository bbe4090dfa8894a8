//go:build linux

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"goprof/testdata/jvmtest"
)

// onScreen is goprof on a terminal at which the test looks.
type onScreen struct {
	t      *testing.T
	cmd    *exec.Cmd
	ours   *os.File
	theirs *os.File
	errors strings.Builder
	before unix.Termios

	mu     sync.Mutex
	screen *screen
	raw    []byte
	closed chan struct{}
}

// startOnScreen starts goprof in a session of its own. goprof controls a terminal of the given size.
func startOnScreen(t *testing.T, columns, rows int, env []string, args ...string) *onScreen {
	t.Helper()
	return startProgram(t, columns, rows, env, nil, append([]string{"goprof"}, args...)...)
}

// init makes this program a shell as well.
func init() { programs["onejob"] = oneJob }

// oneJob is a shell with one job, which has the terminal: the kernel stops a process by Ctrl-Z only if the process
// has a shell. It writes the job's number to descriptor 3.
func oneJob() {
	signal.Ignore(unix.SIGTTOU, unix.SIGTTIN, unix.SIGTSTP)
	job := exec.Command("goprof", os.Args[1:]...)
	job.Stdin, job.Stdout, job.Stderr = os.Stdin, os.Stdout, os.Stderr
	job.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Foreground: true, Ctty: 0, Pdeathsig: syscall.SIGKILL}
	if err := job.Start(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Fprintln(os.NewFile(3, "number"), job.Process.Pid)
	job.Wait()
	os.Exit(job.ProcessState.ExitCode())
}

// startProgram is startOnScreen for any program.
func startProgram(t *testing.T, columns, rows int, env []string, extra []*os.File, args ...string) *onScreen {
	t.Helper()
	ours, theirs := openTerminal(t, columns)
	s := &onScreen{t: t, ours: ours, theirs: theirs, screen: newScreen(columns, rows), closed: make(chan struct{})}
	s.setSize(columns, rows)
	s.before = s.modes()
	s.cmd = exec.Command(args[0], args[1:]...)
	s.cmd.Dir = t.TempDir()
	s.cmd.Stdin, s.cmd.Stdout, s.cmd.Stderr = theirs, theirs, &s.errors
	s.cmd.ExtraFiles = extra
	s.cmd.Env = append(append(os.Environ(), "TERM=xterm-256color", "NO_COLOR="), env...)
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Pdeathsig: syscall.SIGKILL}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go s.read()
	t.Cleanup(func() {
		s.cmd.Process.Kill()
		s.cmd.Wait()
		theirs.Close()
		<-s.closed
		ours.Close()
		if t.Failed() {
			t.Logf("the last screen:\n%s\nstderr: %s", s.text(), s.errors.String())
		}
	})
	return s
}

func (s *onScreen) read() {
	defer close(s.closed)
	b := make([]byte, 1<<16)
	for {
		n, err := s.ours.Read(b)
		s.mu.Lock()
		s.screen.write(b[:n])
		s.raw = append(s.raw, b[:n]...)
		s.mu.Unlock()
		if err != nil {
			return // EIO: the other end is closed
		}
	}
}

func (s *onScreen) modes() unix.Termios {
	t, err := unix.IoctlGetTermios(int(s.theirs.Fd()), unix.TCGETS)
	if err != nil {
		s.t.Fatal(err)
	}
	return *t
}

func (s *onScreen) setSize(columns, rows int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	size := unix.Winsize{Row: uint16(rows), Col: uint16(columns)}
	if err := unix.IoctlSetWinsize(int(s.ours.Fd()), unix.TIOCSWINSZ, &size); err != nil {
		s.t.Fatal(err)
	}
	s.screen.resize(columns, rows)
}

// text is what the screen shows now.
func (s *onScreen) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.screen.text()
}

func (s *onScreen) keys(keys string) {
	s.t.Helper()
	if _, err := io.WriteString(s.ours, keys); err != nil {
		s.t.Fatal(err)
	}
}

// screenLimit bounds a hang. It measures nothing.
var screenLimit = jvmtest.Slow(3 * time.Minute)

// await waits until the screen matches the pattern.
func (s *onScreen) await(pattern string) string {
	s.t.Helper()
	return s.awaitThat(pattern, regexp.MustCompile(pattern).MatchString)
}

// awaitWithout waits until the screen does not match the pattern.
func (s *onScreen) awaitWithout(pattern string) string {
	s.t.Helper()
	re := regexp.MustCompile(pattern)
	return s.awaitThat("no "+pattern, func(text string) bool { return !re.MatchString(text) })
}

func (s *onScreen) awaitThat(what string, is func(string) bool) string {
	s.t.Helper()
	for end := time.Now().Add(screenLimit); ; time.Sleep(20 * time.Millisecond) {
		if text := s.text(); is(text) {
			return text
		}
		if time.Now().After(end) {
			s.t.Fatalf("%s is not on the screen:\n%s", what, s.text())
		}
		if err := s.cmd.Process.Signal(syscall.Signal(0)); err != nil {
			s.t.Fatalf("%s is not on the screen, and goprof has ended: %v", what, err)
		}
	}
}

// wait waits until goprof ends. It demands the terminal as it was before.
func (s *onScreen) wait() (code int) {
	s.t.Helper()
	ended := make(chan error, 1)
	go func() { ended <- s.cmd.Wait() }()
	var err error
	select {
	case err = <-ended:
	case <-time.After(screenLimit):
		s.t.Fatal("goprof does not end")
	}
	var exited *exec.ExitError
	if errors.As(err, &exited) {
		code = exited.ExitCode()
	} else if err != nil {
		s.t.Fatal(err)
	}
	s.isRestored()
	return code
}

// isRestored demands the terminal as it was before goprof.
func (s *onScreen) isRestored() {
	s.t.Helper()
	told := ""
	for end := time.Now().Add(screenLimit); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if told = s.notRestored(); told == "" { // until the terminal's buffer is empty, or the watchdog has acted
			break
		}
	}
	if told != "" {
		s.t.Error(told)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.screen.odd) > 0 {
		s.t.Errorf("sequences that the emulator does not know: %q", s.screen.odd)
	}
}

// notRestored tells what of the terminal is not as it was before. It is empty if all is.
func (s *onScreen) notRestored() string {
	if now := s.modes(); now != s.before {
		return fmt.Sprintf("the terminal's modes are %+v, were %+v", now, s.before)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.screen.alternate || s.screen.hidden || len(s.screen.keyboard) > 0 {
		return fmt.Sprintf("alternate screen %v, cursor hidden %v, not set back: %v", s.screen.alternate,
			s.screen.hidden, s.screen.keyboard)
	}
	return ""
}
