//go:build linux

package ptrace

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"goprof/process/procfs"
	"goprof/sampler/look"
	"goprof/testdata/ctest"
)

// waitingDeep waits for a word deep in a recursion, and then for another word at its beginning.
const waitingDeep = `
#include <unistd.h>
static void waitForWord(void) { char c; while (read(0, &c, 1) != 1); }
static long deep(int n) {
	volatile char pad[1024];
	memset((void *)pad, n, sizeof pad);
	if (n == 0) waitForWord(); else deep(n - 1);
	return pad[n];
}
int main(void) {
	volatile char pad[4096];
	memset((void *)pad, 0x5a, sizeof pad);
	ready();
	deep(250);
	waitForWord();
	return pad[1];
}`

// TestMovedInALook: the thread goes on elsewhere during a look, which spoils the look. goprof repeats the look, which
// then shows the thread as it is. Nothing of the longer stack that was read before is left.
func TestMovedInALook(t *testing.T) {
	p := ctest.Run(t, waitingDeep)
	ctest.Eventually(t, "waits for a word", func() bool { return ctest.State(p.PID, p.PID) == 'S' })
	moved := false
	onTracer(t, p.PID, func(tr *Tracer) {
		snap := new(look.Look)
		o := tr.LookUnstoppedDuring(p.PID, Hint{StackTop: stackTop(t, p.PID)}, snap, func(first *look.Look) {
			if moved {
				return
			}
			moved = true
			deep := first.SP
			if len(first.Stack) < 250<<10 {
				t.Errorf("%d bytes of the deep stack", len(first.Stack))
			}
			p.In.Write([]byte("x"))
			ctest.Eventually(t, "waits elsewhere", func() bool {
				b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/syscall", p.PID))
				_, _, sp, _, ok := procfs.ParseSyscall(b)
				return ok && sp != deep
			})
		})
		if o != Taken || !moved {
			t.Fatalf("%v, moved %v", o, moved)
		}
		mem, err := os.Open(fmt.Sprintf("/proc/%d/mem", p.PID))
		if err != nil {
			t.Fatal(err)
		}
		defer mem.Close()
		now := make([]byte, len(snap.Stack))
		if _, err := mem.ReadAt(now, int64(snap.SP)); err != nil || len(now) < 4096 || !bytes.Equal(now, snap.Stack) {
			t.Errorf("%v: %d bytes at %#x are not its stack", err, len(snap.Stack), snap.SP)
		}
	})
}

func stackTop(t *testing.T, pid int) (top uint64) {
	t.Helper()
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(maps)) {
		if strings.Contains(line, "[stack]") {
			fmt.Sscanf(line, "%x-%x", new(uint64), &top)
		}
	}
	return top
}

func TestUnstopped(t *testing.T) {
	p := ctest.Run(t, `int main(void) { volatile char pad[16384]; memset((void *)pad, 0x5a, sizeof pad); ready(); say((long)(uintptr_t)pad); for (;;) pause(); }`)
	pad := uint64(p.Number(t))
	spin := ctest.Run(t, ctest.Spin)
	onTracer(t, p.PID, func(tr *Tracer) {
		ctest.Eventually(t, "asleep", func() bool { return ctest.State(p.PID, p.PID) == 'S' })
		snap := new(look.Look)
		if o := tr.LookUnstopped(p.PID, Hint{}, snap); o != Taken {
			t.Fatalf("%v", o)
		}
		still, o := lookPatiently(tr, p.PID, 0)
		if o != Taken {
			t.Fatalf("%v", o)
		}
		c := ctest.CPU()
		// Before a stop, the kernel may have prepared the system call to be made again (arm64, kernel/signal.c,
		// do_signal).
		pc := still.Regs[c.PC]
		if tr.standsAtSyscall(p.PID, &still.Snapshot) {
			pc += uint64(len(c.SyscallInst))
		}
		if snap.SP != still.SP || snap.Regs[c.PC] != pc || snap.Syscall != still.Syscall && still.Syscall >= 0 {
			t.Errorf("unstopped sp %#x pc %#x call %d, stopped sp %#x pc %#x call %d", snap.SP, snap.Regs[c.PC],
				snap.Syscall, still.SP, still.Regs[c.PC], still.Syscall)
		}
		if at := pad - snap.SP; uint64(len(snap.Stack)) < at+16384 || snap.Stack[at] != 0x5a {
			t.Errorf("%d bytes of stack, pad at %d", len(snap.Stack), at)
		}
		if tr.Pauses.Count() != 1 {
			t.Errorf("%d pauses: the unstopped look stopped it", tr.Pauses.Count())
		}
	})
	onTracer(t, spin.PID, func(tr *Tracer) {
		if o := tr.LookUnstopped(spin.PID, Hint{}, new(look.Look)); o != Running {
			t.Errorf("a spinning thread: %v", o)
		}
	})
}
