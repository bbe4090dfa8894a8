package postmortem

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"testing"

	"goprof/arch"
	"goprof/arch/arm64"
	"goprof/process"
	"goprof/profile"
)

// The parts of the test's stack.
const (
	stackAt = 0x10000
	codeAt  = 0x20000 // the code that a signal handler returns to
)

// threadNote is NT_PRSTATUS of one thread (include/uapi/linux/elf.h). Each core has at least one.
func threadNote() []byte {
	status := make([]byte, arch.CoreRegs+35*8)
	var b []byte
	for _, word := range []int{len("CORE") + 1, len(status), int(elf.NT_PRSTATUS)} {
		b = binary.LittleEndian.AppendUint32(b, uint32(word))
	}
	return append(append(b, "CORE\x00\x00\x00\x00"...), status...)
}

// signalFrames is a core of aarch64. Its stack holds these siginfo_t, by the stack pointers of their frames.
func signalFrames(t *testing.T, at map[uint64]process.SigInfo) *process.Core {
	t.Helper()
	stack := make([]byte, 4096)
	for sp, info := range at {
		b := stack[sp-stackAt:]
		binary.LittleEndian.PutUint32(b, uint32(info.Signal))
		binary.LittleEndian.PutUint32(b[8:], uint32(info.Code))
		binary.LittleEndian.PutUint64(b[16:], info.Addr)
	}
	load := func(addr, off uint64, b []byte) elf.Prog64 {
		return elf.Prog64{Type: uint32(elf.PT_LOAD), Flags: uint32(elf.PF_R), Off: off, Vaddr: addr,
			Memsz: uint64(len(b)), Filesz: uint64(len(b))}
	}
	note := threadNote()
	const head = 64 + 3*56
	code := arm64.CPU.Sigreturn
	h := elf.Header64{Type: uint16(elf.ET_CORE), Machine: uint16(elf.EM_AARCH64), Version: 1, Phoff: 64, Phentsize: 56,
		Phnum: 3, Ehsize: 64}
	copy(h.Ident[:], "\x7fELF\x02\x01\x01")
	var b bytes.Buffer
	binary.Write(&b, binary.LittleEndian, h)
	binary.Write(&b, binary.LittleEndian, load(stackAt, head, stack))
	binary.Write(&b, binary.LittleEndian, load(codeAt, head+uint64(len(stack)), code))
	binary.Write(&b, binary.LittleEndian, elf.Prog64{Type: uint32(elf.PT_NOTE),
		Off: head + uint64(len(stack)+len(code)), Filesz: uint64(len(note))})
	for _, piece := range [][]byte{stack, code, note} {
		b.Write(piece)
	}
	core, err := process.OpenCore(bytes.NewReader(b.Bytes()), int64(b.Len()), process.CoreOptions{Root: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { core.Close() })
	return core
}

// TestFirstFaultIsTheCause: HotSpot has faulted again while it reported a fault. The cause is the first fault, which is
// the lowest on the stack. A signal still lower that kills no process is not the cause.
func TestFirstFaultIsTheCause(t *testing.T) {
	const sigBus, sigSegv, sigUsr2 = 7, 11, 12
	const second, first, harmless = stackAt + 0x100, stackAt + 0x400, stackAt + 0x800
	core := signalFrames(t, map[uint64]process.SigInfo{second: {Signal: sigSegv, Code: 1, Addr: 0xbad2},
		first: {Signal: sigBus, Code: 2, Addr: 0xbad1}, harmless: {Signal: sigUsr2}})
	handler := func(sp uint64) profile.Frame { return profile.Frame{Kind: profile.Native, PC: codeAt, SP: sp} }
	at := func(pc uint64) profile.Frame { return profile.Frame{Kind: profile.Native, PC: pc} }
	stack := profile.Stack{Frames: []profile.Frame{at(1), handler(second), at(2), at(3), handler(first), at(4), at(5),
		handler(harmless), at(6)}}
	d := &dump{JVM: &JVM{Core: core}}
	var c profile.Core
	d.cause(&c, &stack)
	if c.Cause == nil {
		t.Fatal("no cause")
	}
	if s := c.Cause; s.Number != sigBus || s.Addr != 0xbad1 || s.PC != 4 || s.Frame != 5 {
		t.Errorf("%+v", s)
	}
}
