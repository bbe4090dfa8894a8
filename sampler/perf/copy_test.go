//go:build linux

package perf

import (
	"bytes"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"goprof/arch/cpus"
	"goprof/process"
	"goprof/sampler/bpf"
	"goprof/sampler/ptrace"
	"goprof/sampler/ring"
	"goprof/sampler/span"
	"goprof/testdata/ctest"
)

// needsBPF skips a test if the kernel refuses programs of this process.
func needsBPF(t *testing.T) {
	t.Helper()
	if TryWide(0) != nil {
		t.Skip("BPF programs for perf_event need Linux 5.5, CAP_BPF and CAP_PERFMON")
	}
}

// TestCopyProgram: the kernel's verifier takes the programs of all kinds of trails.
func TestCopyProgram(t *testing.T) {
	needsBPF(t)
	blocks := process.Trail{Known: true, Frame: 8, Owner: 16, OwnerSize: 32, First: 24, HeadSize: 64, Next: 8,
		Begin: 16, End: 20, Below: 16, ObjectSize: 96}
	narrow, less, none := blocks, blocks, blocks
	narrow.Narrow, narrow.Base, narrow.Left = true, 0x8_0000_0000, 3
	less.Less, less.Right = 24, 13
	none.HeadSize = 0
	for name, trail := range map[string]process.Trail{"wide": blocks, "narrow": narrow, "size without arguments": less,
		"no blocks": none} {
		for _, handle := range []uint64{0, 0x7f00_1234_5678} {
			fd, mem, err := bpf.NewMapped((copySize + 4095) / 4096 * 4096)
			if err != nil {
				t.Fatal(err)
			}
			spans, err := span.New(0)
			if err != nil {
				t.Fatal(err)
			}
			defer spans.Close()
			outputs := spans.NewOutputs()
			defer outputs.Close()
			log := make([]byte, 1<<20)
			prog, err := copyProgram(fd, &ptrace.Hint{Side: 0x7fff_8765_4321, SideLen: 432, Handle: handle},
				&trail, outputs).LoadForPerf(log)
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

// TestCopier: the program copies memory with the samples of a thread of the test. The copy equals the memory.
func TestCopier(t *testing.T) {
	needsBPF(t)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	w := ctest.NewTrail(make([]byte, 64), make([]byte, 256))
	object := make([]byte, 96)
	for i := range object {
		object[i] = byte(3 * i)
	}
	handle := make([]byte, 8)
	ctest.Put(handle, 0, ctest.At(object))
	trail := w.Trail
	trail.ObjectSize = len(object)
	side := w.Side
	c, err := newCopier(ptrace.Hint{Side: ctest.At(side), SideLen: len(side), Handle: ctest.At(handle)}, &trail, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	attr := ring.SampleAttr(cpus.Here(), 1e6, 4096, ring.NoKernel, false)
	event, err := unix.PerfEventOpen(&attr, 0, -1, -1, unix.PERF_FLAG_FD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(event)
	if w := (&perfThread{events: []perfEvent{{fd: int32(event)}}}); !w.attach(c.prog) {
		t.Fatal("it takes no program")
	}
	for end := time.Now().Add(time.Minute); *c.word(copyTurns) < 3 && time.Now().Before(end); {
	}
	unix.IoctlSetInt(event, unix.PERF_EVENT_IOC_DISABLE, 0)
	when := int64(*c.word(copyHead + halfWhen))
	var snap process.Snapshot
	if c.take(when+int64(copyDelay), 1e9, &snap) || c.take(when-int64(copyDelay), 1e9, &snap) || c.take(when+100, 100,
		&snap) {
		t.Error("it was taken for another sample's")
	}
	if !c.take(when+100, 1e9, &snap) {
		t.Fatalf("%d turns, nothing was copied", *c.word(copyTurns))
	}
	if !bytes.Equal(snap.Side, side) || snap.SideAddr != ctest.At(side) {
		t.Errorf("side %x, not %x", snap.Side, side)
	}
	used := w.First[64+10*8-16 : 64+50*8]
	for name, want := range map[string][]byte{"owner": w.Owner[:32], "object": object, "handle": handle,
		"first head": w.First[:64],
		"first used": used, "second head": w.Second[:64], "second used": w.Second[64+90*8-16 : 64+100*8]} {
		got := make([]byte, len(want))
		if !snap.Trail.Read(ctest.At(want), got) || !bytes.Equal(got, want) {
			t.Errorf("%s: %x, not %x", name, got, want)
		}
	}
	atomic.StoreUint64(c.word(copyTurns), *c.word(copyTurns)+2) // the thread has run again, twice
	if c.take(when, 1e9, &snap) || len(snap.Side) > 0 || len(snap.Trail.List) > 0 {
		t.Error("an overwritten copy was taken")
	}
	runtime.KeepAlive(w)
}
