//go:build linux

package process

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"
)

func openSelf(t testing.TB) *Process {
	t.Helper()
	return openPID(t, os.Getpid())
}

func openPID(t testing.TB, pid int) *Process {
	t.Helper()
	p, err := Open(pid)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

// startCmd runs a program until the test ends.
func startCmd(t testing.TB, cmd *exec.Cmd) io.WriteCloser {
	t.Helper()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Skipf("cannot run %v: %v", cmd.Args, err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	return in
}

// startShell runs a shell script, and waits until the script prints "ready".
func startShell(t testing.TB, script string, args ...string) (*exec.Cmd, io.WriteCloser) {
	t.Helper()
	cmd := exec.Command("/bin/sh", append([]string{"-c", script, "sh"}, args...)...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	in := startCmd(t, cmd)
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || line != "ready\n" {
		t.Fatalf("the script said %q, %v", line, err)
	}
	return cmd, in
}

// eventually waits until a condition holds. It fails the test if that takes too long.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for range 12_000 {
		if holds() {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatalf("never: %s", what)
}

func TestOpenSelf(t *testing.T) {
	p := openSelf(t)
	if p.CPU() == nil || p.CPU().Name != runtime.GOARCH {
		t.Errorf("CPU is %v, want %s", p.CPU(), runtime.GOARCH)
	}
	if err := p.Alive(); err != nil {
		t.Errorf("Alive: %v", err)
	}
}

func TestCodeInLibc(t *testing.T) {
	cmd, _ := startShell(t, "echo ready; read line")
	p := openPID(t, cmd.Process.Pid)
	addr, err := p.Global("libc.so.6", "read")
	if err != nil {
		t.Skipf("the shell of this system has no libc.so.6: %v", err)
	}
	c, ok := p.Code(addr, true)
	if !ok || c.Image != "libc.so.6" || !strings.HasSuffix(c.Symbol, "read") || c.Row == nil {
		t.Errorf("Code at read = %+v, %v", c, ok)
	}
	image, ok := p.Image("libc.so.6")
	if !ok || c.Offset != addr-image.Bias || addr < image.Start || addr >= image.End {
		t.Errorf("image %+v, offset %#x, address %#x", image, c.Offset, addr)
	}
	// At a function's entry the return address is on top of the stack, or in the link register.
	if c.Row != nil && (c.Row.CFA.Kind != RuleRegister || int(c.Row.CFA.Reg) != p.CPU().SP ||
		int(c.Row.RA) != p.CPU().RA) {
		t.Errorf("row at the entry: %+v", c.Row)
	}
	if n := testing.AllocsPerRun(100, func() { p.Code(addr, true) }); n != 0 {
		t.Errorf("%v allocations in a warm Code", n)
	}
	if _, ok := p.Code(0x1000, true); ok {
		t.Error("there is code at 0x1000")
	}
	if _, err := p.Global("libc.so.6", "no_such_symbol"); !errors.Is(err, ErrNoSymbol) {
		t.Errorf("Global of no symbol: %v", err)
	}
	if _, err := p.Global("no.so", "read"); !errors.Is(err, ErrNoImage) {
		t.Errorf("Global of no image: %v", err)
	}
}

func TestExecIsNoticed(t *testing.T) {
	cmd, in := startShell(t, "echo ready; read line; exec sleep 1000")
	p := openPID(t, cmd.Process.Pid)
	addr := p.Mappings()[0].Start
	in.Write([]byte("go\n"))
	eventually(t, "the shell becomes sleep", func() bool { return p.Alive() != nil })
	if err := p.Alive(); !errors.Is(err, ErrGone) {
		t.Errorf("Alive = %v", err)
	}
	if err := p.Refresh(); !errors.Is(err, ErrGone) {
		t.Errorf("Refresh = %v", err)
	}
	var b [8]byte
	if err := p.Read(addr, b[:]); err != nil && !errors.Is(err, ErrGone) {
		t.Errorf("Read = %v", err)
	}
	if err := p.Read(8, b[:]); !errors.Is(err, ErrGone) {
		t.Errorf("Read of a bad address = %v, want ErrGone", err)
	}
}

func TestExitIsNoticed(t *testing.T) {
	cmd, in := startShell(t, "echo ready; read line")
	p := openPID(t, cmd.Process.Pid)
	addr := p.Mappings()[0].Start
	in.Write([]byte("go\n"))
	var b [8]byte
	eventually(t, "the shell ends", func() bool { return errors.Is(p.Read(addr, b[:]), ErrGone) })
	if err := p.Alive(); !errors.Is(err, ErrGone) {
		t.Errorf("Alive = %v", err)
	}
	cmd.Wait()
	if _, err := p.Threads(); !errors.Is(err, ErrGone) {
		t.Errorf("Threads = %v", err)
	}
}
