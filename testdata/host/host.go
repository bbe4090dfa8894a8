//go:build linux

// Package host gives tests what a machine has besides JVMs (package jvmtest): processes, and the rights that a test
// needs. A right that is missing skips the test and says so.
//
// Only tests import it.
package host

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"goprof/sampler/perf"
)

// NeedRoot skips a test that only root can run.
func NeedRoot(t testing.TB) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
}

// NeedPerf skips a test where perf_event is not permitted, or does not see into the kernel.
func NeedPerf(t testing.TB) {
	t.Helper()
	if err := perf.TryWide(0); err != nil {
		t.Skipf("this machine does not permit perf events of CPUs with a filter: %v", err)
	}
}

// StartReady starts a command that says READY, and returns its pid. It ends with its
// input, at the end of the test at the latest.
func StartReady(t testing.TB, cmd *exec.Cmd) int {
	t.Helper()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var stderr strings.Builder
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		cmd.Process.Kill()
		cmd.Wait()
	})
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if strings.TrimSpace(lines.Text()) == "READY" {
			return cmd.Process.Pid
		}
	}
	cmd.Wait()
	t.Fatalf("%v ended: %s", cmd, stderr.String())
	return 0
}

// Children are the processes that a process has started and not yet waited for.
func Children(pid int) (children []int) {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, stat := range stats {
		b, _ := os.ReadFile(stat)
		child, _, _ := strings.Cut(string(b), " ")
		// The state and the parent stand behind the name, which may hold anything (proc(5)).
		behind := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
		number, err := strconv.Atoi(child)
		if err == nil && len(behind) > 1 && behind[1] == strconv.Itoa(pid) {
			children = append(children, number)
		}
	}
	return children
}

// OnlyChild is the first of them, which a test wants to be there.
func OnlyChild(t testing.TB, pid int) int {
	t.Helper()
	children := Children(pid)
	if len(children) == 0 {
		t.Fatalf("%d has no child", pid)
	}
	return children[0]
}

// MaxPID is above all numbers of processes.
func MaxPID(t testing.TB) int {
	t.Helper()
	b, err := os.ReadFile("/proc/sys/kernel/pid_max")
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(string(bytes.TrimSpace(b)))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// CopyFile copies a program.
func CopyFile(t testing.TB, to, from string) {
	t.Helper()
	b, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, b, 0o755); err != nil {
		t.Fatal(err)
	}
}

// WaitFor waits until something is so; the limit bounds a hang only.
func WaitFor(t testing.TB, what string, so func() bool) {
	t.Helper()
	for range 6000 {
		if so() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("it does not come to this: %s", what)
}
