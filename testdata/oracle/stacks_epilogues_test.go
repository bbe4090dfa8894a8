//go:build linux

package oracle

import (
	"errors"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"goprof/process"
	"goprof/profile"
	"goprof/sampler/ptrace"
	"goprof/testdata/host"
	"goprof/testdata/jvmtest"
	"goprof/unwind"
)

// TestEpilogues steps a thread through a function whose unwind table keeps silent about its epilogue. At each
// instruction the stack is the one that it has before and behind that function's call.
func TestEpilogues(t *testing.T) {
	jvmtest.NotQuick(t, jvmtest.Builds)
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		t.Skip("needs a C compiler: ", err)
	}
	program := filepath.Join(t.TempDir(), "epilogues")
	source := filepath.Join("..", "..", "testdata", "native", "epilogues.c")
	if out, err := exec.Command(gcc, "-O1", "-o", program, source).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	pid := host.StartReady(t, exec.Command(program))
	p, err := process.Open(pid)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	lockThread(t)
	s := &stepper{p: p, tid: pid}
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	defer s.resume()
	w := unwind.New(p, nil)
	want := []string{"without_rows", "middle", "outer", "main"}
	pcs := map[uint64]bool{}
	var stack profile.Stack
	for range 2000 {
		snap := &process.Snapshot{TID: pid, Regs: s.regs, SP: s.sp, PACMask: s.pac, Syscall: -1}
		if err := copyStack(p, ptrace.Hint{}, snap); err != nil {
			t.Fatal(err)
		}
		w.Walk(snap, &stack)
		names := framesOf(stack)
		if names[0] == want[0] {
			pcs[s.pc] = true
			if len(names) < len(want) || !slices.Equal(names[:len(want)], want) {
				t.Fatalf("at %#x, %d instructions: %q, %v", s.pc, len(pcs), names, stack.Truncated)
			}
		}
		err := s.step()
		if errors.Is(err, errBlocked) { // it writes READY, longer than a system call is waited for
			s.mayBlock, err = true, s.read()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if least := map[string]int{"amd64": 19, "arm64": 11}[p.CPU().Name]; len(pcs) < least {
		t.Errorf("only %d instructions of at least %d were met", len(pcs), least)
	}
}
