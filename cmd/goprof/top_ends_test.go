//go:build linux

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"goprof/testdata/jvmtest"
)

// TestTopEnds: whether a signal ends top, or the end of the JVM, the terminal is as before.
func TestTopEnds(t *testing.T) {
	t.Parallel()
	t.Run("SIGTERM", func(t *testing.T) {
		_, s := topOf(t, jvmtest.JDKs(t)[0], 80, 24, nil)
		s.cmd.Process.Signal(syscall.SIGTERM)
		if code := s.wait(); code != 0 {
			t.Errorf("exit code %d", code)
		}
	})
	t.Run("JVM", func(t *testing.T) {
		jvm, s := topOf(t, jvmtest.JDKs(t)[0], 80, 24, nil)
		s.await(`cpu-30`)
		jvm.Kill()
		if code := s.wait(); code != 0 {
			t.Errorf("exit code %d", code)
		}
		if !strings.Contains(s.errors.String(), fmt.Sprintf("process %d has ended", jvm.PID)) {
			t.Errorf("it said %q", s.errors.String())
		}
		for end := time.Now().Add(screenLimit); !strings.Contains(s.text(), "cpu-30"); time.Sleep(10 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("the last reading is gone:\n%s", s.text())
			}
		}
	})
	t.Run("after a while", func(t *testing.T) {
		jvm := jvmtest.Start(t, jvmtest.JDKs(t)[0], "truth.Rates", "--", "20")
		s := startOnScreen(t, 80, 24, nil, "top", strconv.Itoa(jvm.PID), "-d", "3") // perhaps without any reading
		if code := s.wait(); code != 0 {
			t.Errorf("exit code %d", code)
		}
	})
}

// jobOnScreen starts top as a shell's job. It returns the job's number.
func jobOnScreen(t *testing.T, jvm *jvmtest.JVM) (*onScreen, int) {
	t.Helper()
	tell, told, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer tell.Close()
	s := startProgram(t, 80, 24, nil, []*os.File{told}, "onejob", "top", strconv.Itoa(jvm.PID))
	told.Close()
	job := 0
	if _, err := fmt.Fscan(tell, &job); err != nil {
		t.Fatal(err)
	}
	s.await(`\w+ +cpu-30`)
	return s, job
}

// noneStands demands that no thread of the JVM is stopped or traced.
func noneStands(t *testing.T, jvm *jvmtest.JVM) {
	t.Helper()
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", jvm.PID))
	for _, task := range tasks {
		tid, _ := strconv.Atoi(filepath.Base(task))
		if state := stateOfThread(jvm.PID, tid); strings.ContainsAny(state, "Tt") {
			t.Errorf("thread %d is in state %s", tid, state)
		}
	}
	if len(tasks) == 0 {
		t.Error("the JVM has no threads")
	}
}

// TestTopSuspend: Ctrl-Z gives the terminal back and stops goprof, and nothing else. When goprof goes on, so does
// the screen.
func TestTopSuspend(t *testing.T) {
	jvm := jvmtest.Start(t, jvmtest.JDKs(t)[0], "truth.Rates", "--", "20")
	s, goprof := jobOnScreen(t, jvm)
	for round := range 3 {
		if round == 1 {
			unix.Kill(goprof, unix.SIGTSTP)
		} else {
			s.keys("\x1a")
		}
		awaitState(t, goprof, "T")
		s.isRestored()
		noneStands(t, jvm)
		unix.Kill(goprof, unix.SIGCONT)
		awaitState(t, goprof, "SR")
		s.await(`(?s)THREAD by cpu.*\w+ +cpu-30`)
	}
	s.keys("q")
	if code := s.wait(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// TestTopKilled: whatever ends goprof, the terminal is as before, and no thread stands.
func TestTopKilled(t *testing.T) {
	jvm := jvmtest.Start(t, jvmtest.JDKs(t)[0], "truth.Rates", "--", "20")
	for _, sig := range []unix.Signal{unix.SIGKILL, unix.SIGABRT, unix.SIGQUIT, unix.SIGHUP} {
		t.Run(unix.SignalName(sig), func(t *testing.T) {
			if signal.Ignored(sig) {
				t.Skip("the signal is ignored here, so goprof ignores it, too; nohup does that")
			}
			s, goprof := jobOnScreen(t, jvm)
			unix.Kill(goprof, sig)
			s.cmd.Wait()
			s.isRestored() // the watchdog comes a moment later
			noneStands(t, jvm)
		})
	}
}

// awaitState waits until a process is in one of these states.
func awaitState(t *testing.T, pid int, states string) {
	t.Helper()
	for end := time.Now().Add(screenLimit); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if strings.Contains(states, stateOfProcess(t, pid)) {
			return
		}
	}
	t.Fatalf("process %d is not in state %s", pid, states)
}

func stateOfProcess(t *testing.T, pid int) string {
	state := stateOfThread(pid, pid)
	if state == "" {
		t.Fatalf("process %d is gone", pid)
	}
	return state
}

// stateOfThread is the kernel's letter for a thread's state. It is empty if the thread has ended.
func stateOfThread(pid, tid int) string {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/stat", pid, tid))
	if i := bytes.LastIndexByte(b, ')'); err == nil && i > 0 && i+2 < len(b) {
		return string(b[i+2 : i+3])
	}
	return ""
}
