//go:build linux

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"goprof/cmd/goprof/exit"
)

func init() { programs["seizeall"] = seizeAll }

// seizeAll is a debugger. It traces every thread of a process until it is killed.
func seizeAll() {
	runtime.LockOSThread() // this OS thread is the tracer
	tasks := "/proc/" + os.Args[1] + "/task/*"
	seized := map[string]bool{}
	for again := true; again; {
		again = false
		threads, _ := filepath.Glob(tasks)
		for _, path := range threads {
			tid, _ := strconv.Atoi(filepath.Base(path))
			if seized[path] || unix.PtraceSeize(tid) != nil {
				continue
			}
			seized[path], again = true, true
		}
	}
	fmt.Println("READY", len(seized))
	time.Sleep(time.Hour) // without C in the program, Go would take select {} for a deadlock
}

// TestTracedAlready: a debugger traces the JVM. goprof says so at once, with the debugger's pid. Once the debugger
// is gone, goprof records the JVM again.
func TestTracedAlready(t *testing.T) {
	t.Parallel()
	jvm := guest(t)
	pid := strconv.Itoa(jvm.PID)
	debugger := exec.Command("seizeall", pid)
	debugger.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := debugger.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := debugger.Start(); err != nil {
		t.Fatal(err)
	}
	end := func() { debugger.Process.Kill(); debugger.Wait() }
	defer end()
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || strings.HasPrefix(line, "READY 0") {
		t.Fatalf("%q %v", line, err)
	}

	file := t.TempDir() + "/o.collapsed"
	// There is no -d, so only the tracer can end the recording.
	for _, args := range [][]string{{"record", "--engine", "ptrace", "--pid", pid, "-o", file}, {"dump", "--pid", pid},
		{"doctor", "--pid", pid}} {
		code, told := runGoprof(t, args...)
		why := fmt.Sprintf("process %d (seizeall) traces it already", debugger.Process.Pid)
		remedy := fmt.Sprintf("try: kill %d\n", debugger.Process.Pid)
		if code != exit.NotPermitted || !strings.Contains(told, why) || !strings.HasSuffix(told, remedy) {
			t.Errorf("%v: exit code %d: %s", args, code, told)
		}
	}
	if _, err := os.Lstat(file); err == nil {
		t.Error("an empty recording was written")
	}
	if code, told := runGoprof(t, "dump", "--nonblocking", "--pid", pid); code != exit.OK {
		t.Errorf("a dump that stops nobody: exit code %d: %s", code, told)
	}
	end()
	if code, told := runRecord(t, "--pid", pid, "-d", "1", "-o", file); code != exit.OK {
		t.Errorf("after the tracer's end: exit code %d: %s", code, told)
	}
}

// recordTries is how often a recording may find that the JVM had no CPU during the recording: a machine can stand
// still, or have no CPU to spare, for longer than a second. goprof has an exit code of its own for that.
const recordTries = 30

// runRecord is runGoprof for a recording. It tries again until there is a sample.
func runRecord(t *testing.T, args ...string) (code exit.Code, told string) {
	t.Helper()
	for range recordTries {
		if code, told = runGoprof(t, append([]string{"record"}, args...)...); code != exit.NoSamples {
			break
		}
	}
	return code, told
}

// runGoprof returns the exit code and standard error. Its time limit bounds a hang.
func runGoprof(t *testing.T, args ...string) (exit.Code, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "goprof", args...)
	var told strings.Builder
	cmd.Stderr = &told
	err := cmd.Run()
	var status *exec.ExitError
	if err != nil && !errors.As(err, &status) {
		t.Fatal(err)
	}
	return exit.Code(cmd.ProcessState.ExitCode()), told.String()
}
