//go:build linux

// Package ctest compiles and starts small C programs, for tests that look at threads.
package ctest

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"goprof/arch"
	"goprof/arch/cpus"
	"goprof/testdata/jvmtest"
)

// Program is a C program that runs.
type Program struct {
	*exec.Cmd
	PID int
	Out *bufio.Reader
	In  io.WriteCloser
}

// Compile compiles a program that begins with what all of them need. flags are gcc's.
func Compile(t testing.TB, source string, flags ...string) string {
	t.Helper()
	jvmtest.NotQuick(t, jvmtest.Builds)
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		t.Skip("gcc is not installed (Debian: gcc libc6-dev)")
	}
	dir := t.TempDir()
	src, bin := filepath.Join(dir, "p.c"), filepath.Join(dir, "p")
	if err := os.WriteFile(src, []byte(head+source), 0o600); err != nil {
		t.Fatal(err)
	}
	flags = append(flags, "-O1", "-w", "-pthread", "-o", bin, src)
	if out, err := exec.Command(gcc, flags...).CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, out)
	}
	return bin
}

// Start starts a program and waits until it has said that it is ready.
func Start(t testing.TB, bin string, args ...string) *Program {
	t.Helper()
	p := StartCommand(t, exec.Command(bin, args...))
	p.Line(t)
	return p
}

// StartCommand starts a program that ends with the test.
func StartCommand(t testing.TB, cmd *exec.Cmd) *Program {
	t.Helper()
	jvmtest.NotQuick(t, jvmtest.RunsPrograms)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := jvmtest.Spawn(cmd); err != nil {
		t.Fatal(err)
	}
	p := &Program{Cmd: cmd, PID: cmd.Process.Pid, Out: bufio.NewReader(out), In: in}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	return p
}

// Run compiles and starts a program.
func Run(t testing.TB, source string, args ...string) *Program {
	t.Helper()
	return Start(t, Compile(t, source), args...)
}

// Line is the next line that it prints.
func (p *Program) Line(t testing.TB) string {
	t.Helper()
	s, err := p.Out.ReadString('\n')
	if err != nil {
		t.Fatalf("the program ended without a word: %v", err)
	}
	return strings.TrimSpace(s)
}

// Number is the number in its next line.
func (p *Program) Number(t testing.TB) int {
	t.Helper()
	n, err := strconv.Atoi(p.Line(t))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// Eventually waits for something that must happen; how soon is no part of the test.
func Eventually(t testing.TB, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if f() {
			return
		}
	}
	t.Fatalf("it never came to this: %s", what)
}

// Rounds is how often a test tries what takes native code moments: n times, and a tenth of that on a slow machine
// (GOPROF_SLOW), as an emulated one is.
func Rounds(n int) int {
	if os.Getenv("GOPROF_SLOW") != "" {
		n = (n + 9) / 10
	}
	return n
}

// CPU is the one that the tests run on, nil if goprof does not know it.
func CPU() *arch.CPU { return cpus.Here() }

// NeedCPU skips on a CPU that goprof is not written for.
func NeedCPU(t testing.TB) *arch.CPU {
	t.Helper()
	cpu := CPU()
	if cpu == nil {
		t.Skipf("goprof does not know this CPU, %s", runtime.GOARCH)
	}
	return cpu
}
