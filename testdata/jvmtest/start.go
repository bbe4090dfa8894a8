//go:build linux

package jvmtest

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// How long a program may take to get ready, to answer and to end. They bound a hang and measure
// nothing; the machine may be slow, and the program interpreted.
var (
	readyTimeout  = Slow(10*time.Second) + 3*time.Minute
	answerTimeout = Slow(10*time.Second) + 5*time.Minute
)

// JVM is a running program of testdata/java.
type JVM struct {
	JDK JDK
	PID int

	t      testing.TB
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	lines  chan string // of stdout; closed at its end
	stderr tail
	ended  bool
}

// Start starts the main class of a program of testdata/java and waits until it says that it is ready.
// Options before "--" are the JVM's, those behind it the program's:
//
//	jvmtest.Start(t, jdk, "truth.Shares", "-Xint", "--", "2", "7")
//
// At the end of the test the program verifies its own results, and is gone.
func Start(t testing.TB, jdk JDK, class string, options ...string) *JVM {
	t.Helper()
	line := CommandLine(t, jdk, class, options...)
	cmd := exec.Command(line[0], line[1:]...)
	cmd.Dir = t.TempDir() // where a JVM that crashes or is halted leaves its hs_err_pid.log, recordings and cores
	cmd.Env = cleanEnv()
	jvm := &JVM{JDK: jdk, t: t, cmd: cmd, lines: make(chan string, 64)}
	cmd.Stderr = &jvm.stderr
	var err error
	if jvm.stdin, err = cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := Spawn(cmd); err != nil {
		t.Fatalf("starting %s: %v", class, err)
	}
	jvm.PID = cmd.Process.Pid
	t.Cleanup(jvm.finish)
	go jvm.readLines(stdout)
	jvm.awaitReady(class)
	return jvm
}

// CommandLine is what Start runs, for tests that start a JVM in their own way.
func CommandLine(t testing.TB, jdk JDK, class string, options ...string) []string {
	t.Helper()
	flags, args := options, []string(nil)
	if i := slices.Index(options, "--"); i >= 0 {
		flags, args = options[:i], options[i+1:]
	}
	line := append([]string{jdk.Tool("java")}, flags...)
	if !slices.Contains(flags, "-cp") { // archives of class data want jars, no directories
		line = append(line, "-cp", Classes(t))
	}
	line = append(line, class)
	return append(line, args...)
}

var (
	spawner  sync.Once
	spawning = make(chan func())
)

// Spawn starts a command that the kernel kills when the test binary ends, however that ends. All are started from one
// OS thread that lasts as long as the test binary. The kernel sends Pdeathsig when the *thread* that forked ends
// (prctl(2), PR_SET_PDEATHSIG), and Go ends a thread with a goroutine that is locked to it, as goroutines that trace
// are.
func Spawn(cmd *exec.Cmd) error {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	spawner.Do(func() {
		go func() {
			runtime.LockOSThread()
			for start := range spawning {
				start()
			}
		}()
	})
	result := make(chan error)
	spawning <- func() { result <- cmd.Start() }
	return <-result
}

func (j *JVM) readLines(stdout io.Reader) {
	defer close(j.lines)
	in := bufio.NewScanner(stdout)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		j.lines <- in.Text()
	}
}

func (j *JVM) awaitReady(class string) {
	j.t.Helper()
	deadline := time.After(readyTimeout)
	for {
		line, err := j.nextLine(deadline)
		if err != nil {
			j.t.Fatalf("%s did not get ready: %v\n%s", class, err, j.Stderr())
		}
		if line == "READY" {
			return
		}
	}
}

func (j *JVM) nextLine(deadline <-chan time.Time) (string, error) {
	select {
	case line, ok := <-j.lines:
		if !ok {
			return "", errors.New("the program has ended")
		}
		return line, nil
	case <-deadline:
		return "", errors.New("no answer in time")
	}
}

// Command sends the program a line and returns the lines of its answer. An answer of
// failure fails the test.
func (j *JVM) Command(line string) []string {
	j.t.Helper()
	answer, err := j.ask(line)
	if err != nil {
		j.t.Fatalf("%q: %v\n%s", line, err, j.Stderr())
	}
	return answer
}

func (j *JVM) ask(line string) ([]string, error) {
	if _, err := io.WriteString(j.stdin, line+"\n"); err != nil {
		return nil, err
	}
	deadline := time.After(answerTimeout)
	var answer []string
	for {
		line, err := j.nextLine(deadline)
		if err != nil {
			return answer, err
		}
		if line == "OK" {
			return answer, nil
		}
		if why, ok := strings.CutPrefix(line, "FAIL "); ok {
			return answer, fmt.Errorf("the program says: %s", why)
		}
		answer = append(answer, line)
	}
}

// Stderr is the end of what the JVM wrote to it so far.
func (j *JVM) Stderr() string { return j.stderr.String() }

// Kill ends the JVM at once; nothing is verified. For tests of targets that die.
func (j *JVM) Kill() {
	if !j.ended {
		j.ended = true
		_ = j.cmd.Process.Kill() // it may be gone already
		_ = j.reap()             // "killed" is what was asked for
	}
}

// Die waits until the JVM has died, of the command if there is one. Nothing is verified.
func (j *JVM) Die(command string) {
	j.t.Helper()
	if command != "" {
		if _, err := io.WriteString(j.stdin, command+"\n"); err != nil {
			j.t.Fatal(err)
		}
	}
	j.ended = true
	if err := j.awaitExit(); err != nil {
		_ = j.cmd.Process.Kill()
		j.t.Errorf("%q: %v\n%s", command, err, j.Stderr())
	}
	_ = j.reap() // how it ends is what the test is about
}

// Quit makes the program verify its results and end, and fails the test if they are wrong.
// The end of the test does it otherwise.
func (j *JVM) Quit() {
	j.t.Helper()
	if j.ended {
		return
	}
	j.ended = true
	_, err := j.ask("quit")
	if err == nil {
		err = j.awaitExit()
	}
	if err != nil {
		_ = j.cmd.Process.Kill()
	}
	if status := j.reap(); err == nil {
		err = status
	}
	if err != nil {
		j.t.Errorf("%s: its own verification failed: %v\n%s", j.cmd, err, j.Stderr())
	}
}

func (j *JVM) finish() {
	j.Quit()
	if j.t.Failed() && j.Stderr() != "" {
		j.t.Logf("stderr of pid %d:\n%s", j.PID, j.Stderr())
	}
}

// awaitExit waits until stdout is at its end, which is when the process is.
func (j *JVM) awaitExit() error {
	deadline := time.After(answerTimeout)
	for {
		select {
		case _, ok := <-j.lines:
			if !ok {
				return nil
			}
		case <-deadline:
			return errors.New("it does not end")
		}
	}
}

// reap waits for a process that ends. The error is nil if it ended by itself, and well.
func (j *JVM) reap() error {
	j.stdin.Close()
	for range j.lines { // Wait would close the pipe under its reader
	}
	return j.cmd.Wait()
}

// tail keeps the last part of what is written to it.
type tail struct {
	mu   sync.Mutex
	text bytes.Buffer
}

const tailSize = 64 << 10

func (b *tail) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.text.Write(p)
	if over := b.text.Len() - tailSize; over > 0 {
		b.text.Next(over)
	}
	return len(p), nil
}

func (b *tail) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}
