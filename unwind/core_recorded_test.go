package unwind

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"goprof/arch"
	"goprof/process"
	"goprof/profile"
	"goprof/testdata/captured"
	"goprof/vmstructs"
)

// coreEvery: one of coreEvery recorded walks becomes a core.
const coreEvery = 12

// TestCoreOfArm64 makes core files of recorded walks of arm64 JVMs. The registers and the mask of signatures become
// notes, as the kernel writes them, and memory becomes segments. On any CPU that reads such a core, the walk has the
// frames of the recording. The recording has no ELF files, so it provides each pc's library and unwind rules itself.
func TestCoreOfArm64(t *testing.T) {
	files, _ := filepath.Glob("testdata/arm64/*.walks")
	cores, frames, signed := 0, 0, 0
	for _, file := range files {
		if strings.HasPrefix(filepath.Base(file), "virtual-") {
			continue // a snapshot does not have their frames in the heap
		}
		rec, w := recorded(t, file)
		for i := 0; i < len(rec.Snapshots); i += coreEvery {
			rec.Step(i)
			var want, got profile.Stack
			w.Walk(rec.Snapshots[i], &want)
			walkCore(t, rec, rec.Snapshots[i], &got)
			if why := otherFrames(&want, &got); why != "" {
				t.Errorf("%s, walk %d: %s", filepath.Base(file), i, why)
			}
			cores++
			frames += len(got.Frames)
			if rec.Snapshots[i].PACMask != 0 {
				signed++
			}
		}
	}
	t.Logf("%d cores, %d of threads with signed addresses, %d frames are the same", cores, signed, frames)
	if cores < 40 || signed == 0 || frames < 500 {
		t.Error("too few")
	}
}

// walkCore makes a core of a snapshot, and walks its thread.
func walkCore(t *testing.T, rec *captured.Recording, snap *process.Snapshot, stack *profile.Stack) {
	t.Helper()
	b := armCore(rec, snap)
	core, err := process.OpenCore(bytes.NewReader(b), int64(len(b)), process.CoreOptions{Root: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer core.Close()
	target := coreAndRecording{rec, core}
	vm, err := vmstructs.Open(target)
	if err != nil {
		t.Fatal(err)
	}
	w := New(target, vm)
	w.RawNames = true
	th := core.Threads()[0]
	again := process.Snapshot{TID: th.TID, Regs: th.Regs, PACMask: th.PACMask, SP: th.Regs[core.CPU().SP],
		SideAddr: snap.SideAddr, UnderSP: snap.UnderSP, Syscall: snap.Syscall, Cut: snap.Cut}
	again.Stack, again.Side, again.Under = make([]byte, len(snap.Stack)), make([]byte, len(snap.Side)),
		make([]byte, len(snap.Under))
	for addr, piece := range map[uint64][]byte{again.SP: again.Stack, snap.SideAddr: again.Side,
		snap.UnderSP: again.Under} {
		if err := core.Read(addr, piece); err != nil && len(piece) > 0 {
			t.Fatalf("0x%x: %v", addr, err)
		}
	}
	w.Walk(&again, stack)
}

func otherFrames(want, got *profile.Stack) string {
	if want.Truncated != got.Truncated || len(want.Frames) != len(got.Frames) {
		return "the core gives another stack"
	}
	for i := range want.Frames {
		x, y := want.Frames[i], got.Frames[i]
		f, g := x.Func, y.Func
		x.Func, y.Func = nil, nil
		if x != y || !reflect.DeepEqual(f, g) {
			return "frame " + f.Name + " is " + g.Name + " in the core"
		}
	}
	return ""
}

// coreAndRecording reads memory from a core. Facts from the files of libraries come from the recording.
type coreAndRecording struct {
	*captured.Recording
	core *process.Core
}

func (c coreAndRecording) Read(addr uint64, p []byte) error { return c.core.Read(addr, p) }
func (c coreAndRecording) ReadMany(rs []process.Range)      { c.core.ReadMany(rs) }
func (c coreAndRecording) CPU() *arch.CPU                   { return c.core.CPU() }

// armCore makes a core file of a snapshot and the memory of its recording (include/uapi/linux/elf.h, fs/binfmt_elf.c).
func armCore(rec *captured.Recording, snap *process.Snapshot) []byte {
	type piece struct {
		addr uint64
		b    []byte
	}
	var pieces []piece
	add := func(addr uint64, b []byte) {
		if len(b) > 0 {
			pieces = append(pieces, piece{addr, b})
		}
	}
	add(snap.SP, snap.Stack)
	add(snap.SideAddr, snap.Side)
	add(snap.UnderSP, snap.Under)
	rec.EachPiece(add)
	notes := armNotes(snap)
	const head, prog = 64, 56
	at := uint64(head + prog*(len(pieces)+1))
	var b bytes.Buffer
	h := elf.Header64{Type: uint16(elf.ET_CORE), Machine: uint16(elf.EM_AARCH64), Version: 1, Phoff: head,
		Phentsize: prog, Phnum: uint16(len(pieces) + 1), Ehsize: head}
	copy(h.Ident[:], "\x7fELF\x02\x01\x01")
	binary.Write(&b, binary.LittleEndian, h)
	binary.Write(&b, binary.LittleEndian, elf.Prog64{Type: uint32(elf.PT_NOTE), Off: at, Filesz: uint64(len(notes))})
	at += uint64(len(notes))
	for _, p := range pieces {
		binary.Write(&b, binary.LittleEndian, elf.Prog64{Type: uint32(elf.PT_LOAD), Flags: uint32(elf.PF_R), Off: at,
			Vaddr: p.addr, Memsz: uint64(len(p.b)), Filesz: uint64(len(p.b))})
		at += uint64(len(p.b))
	}
	b.Write(notes)
	for _, p := range pieces {
		b.Write(p.b)
	}
	return b.Bytes()
}

// armNotes makes NT_PRSTATUS (x0-x30, sp, pc, pstate) and NT_ARM_PAC_MASK (of data, of code).
func armNotes(snap *process.Snapshot) []byte {
	var b bytes.Buffer
	note := func(owner string, kind uint32, desc []byte) {
		binary.Write(&b, binary.LittleEndian, []uint32{uint32(len(owner) + 1), uint32(len(desc)), kind})
		b.WriteString(owner)
		b.Write(make([]byte, 4-len(owner)%4))
		b.Write(desc)
	}
	status := make([]byte, arch.CoreRegs+34*8+8)
	binary.LittleEndian.PutUint32(status[arch.CoreThread:], uint32(snap.TID))
	for i := range 33 {
		binary.LittleEndian.PutUint64(status[arch.CoreRegs+i*8:], snap.Regs[i])
	}
	note("CORE", 1, status)
	if snap.PACMask != 0 {
		mask := binary.LittleEndian.AppendUint64(nil, snap.PACMask)
		note("LINUX", 0x406, binary.LittleEndian.AppendUint64(mask, snap.PACMask))
	}
	return b.Bytes()
}
