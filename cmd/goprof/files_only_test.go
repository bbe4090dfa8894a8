//go:build linux

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestFilesAreReadWithoutRights: while a command waits for its input, no OS thread of it has a right that it does
// not need, and it looks at no process.
func TestFilesAreReadWithoutRights(t *testing.T) {
	if !changesAllThreads() {
		t.Skip("built with cgo: Go cannot change all OS threads then")
	}
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"flame - -o x.html", "report -", "heat - -o x.html", "convert - -o x.pb.gz", "diff - a",
		"redact pipe -o x.jfr", "dump --core pipe", "locks --core pipe", "triage --core pipe"} {
		t.Run(line, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), "goprof", strings.Fields(line)...)
			cmd.Dir = dir
			in, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			defer func() {
				in.Close()
				cmd.Process.Kill()
				cmd.Wait()
			}()
			for end := time.Now().Add(screenLimit); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
				if all, guarded := rightsOf(t, cmd.Process.Pid); all > 0 && all == guarded {
					return
				}
			}
			t.Error("it has rights, and waits for its input")
		})
	}
}

// rightsOf counts the OS threads of a process, and those without rights.
func rightsOf(t *testing.T, pid int) (all, guarded int) {
	t.Helper()
	tasks, _ := filepath.Glob(filepath.Join("/proc", strconv.Itoa(pid), "task", "*", "status"))
	for _, task := range tasks {
		text, err := os.ReadFile(task)
		if err != nil {
			continue
		}
		all++
		has := func(line string) bool { return strings.Contains(string(text), "\n"+line+"\n") }
		if has("CapPrm:\t0000000000000000") && has("CapEff:\t0000000000000000") && has("NoNewPrivs:\t1") &&
			has("Seccomp:\t2") {
			guarded++
		}
	}
	return all, guarded
}

// changesAllThreads reports whether a call can be made on all OS threads. That does not work in a program with C in
// it, such as a test that is built with a C compiler. goprof has no C.
func changesAllThreads() bool {
	_, _, e := syscall.AllThreadsSyscall(unix.SYS_GETPPID, 0, 0, 0)
	return e != unix.ENOTSUP
}
