//go:build linux

package sampler

import (
	"bufio"
	"fmt"
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
	"goprof/process"
)

// program compiles a small C program and starts it. It must print a line when it is ready.
type program struct {
	*exec.Cmd
	pid int
	out *bufio.Reader
	in  io.WriteCloser
}

func compile(t testing.TB, source string) string {
	t.Helper()
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		t.Skip("gcc is not installed (Debian: gcc libc6-dev)")
	}
	dir := t.TempDir()
	src, bin := filepath.Join(dir, "p.c"), filepath.Join(dir, "p")
	if err := os.WriteFile(src, []byte(cHead+source), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(gcc, "-O1", "-w", "-pthread", "-o", bin, src).CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, out)
	}
	return bin
}

func start(t testing.TB, bin string, args ...string) *program {
	t.Helper()
	p := startCommand(t, exec.Command(bin, args...))
	p.line(t)
	return p
}

// startCommand starts a program that ends with the test.
func startCommand(t testing.TB, cmd *exec.Cmd) *program {
	t.Helper()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &program{Cmd: cmd, pid: cmd.Process.Pid, out: bufio.NewReader(out), in: in}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	return p
}

func run1(t testing.TB, source string, args ...string) *program {
	t.Helper()
	return start(t, compile(t, source), args...)
}

func (p *program) line(t testing.TB) string {
	t.Helper()
	s, err := p.out.ReadString('\n')
	if err != nil {
		t.Fatalf("the program ended without a word: %v", err)
	}
	return strings.TrimSpace(s)
}

func (p *program) number(t testing.TB) int {
	t.Helper()
	n, err := strconv.Atoi(p.line(t))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// state is a thread's state letter.
func threadState(pid, tid int) byte {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/stat", pid, tid))
	if err != nil {
		return 0
	}
	s, _, _ := parseStat(b)
	return s
}

// eventually waits for something that must happen; how soon is no part of the test.
func eventually(t testing.TB, what string, f func() bool) {
	t.Helper()
	for range 20000 {
		if f() {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Fatalf("it never came to this: %s", what)
}

func thisCPU() *arch.CPU { return cpus.Here() }

// needCPU skips on a CPU that goprof is not written for.
func needCPU(t testing.TB) *arch.CPU {
	t.Helper()
	cpu := thisCPU()
	if cpu == nil {
		t.Skipf("goprof does not know this CPU, %s", runtime.GOARCH)
	}
	return cpu
}

// needTicks ends a test whose figures mean little, because the machine gave the sampling thread no CPU at more than a quarter of its ticks.
// That these ticks are counted is what goprof promises then.
func needTicks(t testing.TB, got *Stats) {
	t.Helper()
	if got.Skipped > got.Ticks/4 {
		t.Skipf("not judged: there was no CPU for the sampling thread at %d ticks, beside %d that were held", got.Skipped, got.Ticks)
	}
}

// onTracer runs f with a Tracer of pid on an OS thread that ends afterwards.
func onTracer(t testing.TB, pid int, f func(tr *Tracer)) {
	t.Helper()
	cpu := needCPU(t)
	OnOwnThread(func() {
		tr := NewTracer(pid, cpu)
		defer tr.Close()
		f(tr)
	})
}

// lookPatiently is Look, and Collect if the stop comes late.
func lookPatiently(tr *Tracer, tid int, top uint64) (*process.Snapshot, Outcome) {
	return lookAt(tr, tid, Hint{StackTop: top})
}

func lookAt(tr *Tracer, tid int, hint Hint) (*process.Snapshot, Outcome) {
	snap := new(process.Snapshot)
	o := tr.Look(tid, hint, snap)
	for range 10000 {
		if o != Pending {
			return snap, o
		}
		time.Sleep(time.Millisecond)
		if s, got, ok := tr.Collect(); ok && s == snap {
			o = got
		}
	}
	return snap, o
}

// cHead begins all the C programs.
const cHead = `
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
static int gettid_(void) { return syscall(SYS_gettid); }
static long cpu_ns(void) { struct timespec t; clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t); return t.tv_sec * 1000000000L + t.tv_nsec; }
static void ready(void) { puts("ready"); fflush(stdout); }
static void say(long n) { printf("%ld\n", n); fflush(stdout); }
`

// cSpin keeps 16 KB of stack in use and spins.
const cSpin = `
int main(void) {
	volatile char pad[16384];
	memset((void *)pad, 0x5a, sizeof pad);
	ready();
	say((long)(uintptr_t)pad);
	for (volatile long i = 0;; i++) pad[i & 1023] = 0x5a;
}`
