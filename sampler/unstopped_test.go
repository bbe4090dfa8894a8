//go:build linux

package sampler

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"goprof/process"
)

// waitingDeep waits for a word deep in a recursion, and then for another at its beginning.
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

// TestMovedInALook: a look that a thread has spoilt by going on elsewhere is repeated, and shows the thread as it is then: not
// what was read of its stack before, which was longer.
func TestMovedInALook(t *testing.T) {
	p := run1(t, waitingDeep)
	eventually(t, "waits for a word", func() bool { return threadState(p.pid, p.pid) == 'S' })
	moved := false
	onTracer(t, p.pid, func(tr *Tracer) {
		snap := new(process.Snapshot)
		o := tr.LookUnstoppedDuring(p.pid, Hint{StackTop: stackTop(t, p.pid)}, snap, func(first *process.Snapshot) {
			if moved {
				return
			}
			moved = true
			deep := first.SP
			if len(first.Stack) < 250<<10 {
				t.Errorf("%d bytes of the deep stack", len(first.Stack))
			}
			p.in.Write([]byte("x"))
			eventually(t, "waits elsewhere", func() bool {
				b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/syscall", p.pid))
				_, _, sp, _, ok := parseSyscall(b)
				return ok && sp != deep
			})
		})
		if o != Taken || !moved {
			t.Fatalf("%v, moved %v", o, moved)
		}
		mem, err := os.Open(fmt.Sprintf("/proc/%d/mem", p.pid))
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

// stackTop is where the main thread's stack ends.
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
