//go:build linux

package main

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"goprof/arch"
	"goprof/cmd/goprof/exit"
)

// mostForCore bounds the memory that goprof may take for a core file, whatever that file claims to hold.
const mostForCore = 200 << 20

// TestHostileCoresTakeLittle: a core has as many threads and segments as a core may have. Half of the segments are
// libraries, and all are lies. Its notes are half a gigabyte, with holes of the file in their place. goprof ends
// with "no JVM", in bounded memory.
func TestHostileCoresTakeLittle(t *testing.T) {
	t.Parallel()
	many, libraries := 1<<18, 1<<17
	if testing.Short() { // make test takes all of them: 4 s of CPU time
		many, libraries = many/8, libraries/8
	}
	var threads, list, names bytes.Buffer
	for i := range 1 << 16 {
		status := make([]byte, 336)
		binary.LittleEndian.PutUint32(status[arch.CoreThread:], uint32(i+1))
		noteOf(&threads, elf.NT_PRSTATUS, status)
	}
	binary.Write(&list, binary.LittleEndian, []uint64{uint64(libraries), 4096})
	loads := make([]elf.Prog64, many)
	for i := range uint64(many) {
		at := 1<<32 + i*8192
		if i < uint64(libraries) {
			binary.Write(&list, binary.LittleEndian, []uint64{at, at + 4096, 0})
			fmt.Fprintf(&names, "/%06d%025d\x00", i, 0)
		}
		loads[i] = elf.Prog64{Type: uint32(elf.PT_LOAD), Flags: uint32(elf.PF_R | elf.PF_X), Vaddr: at, Memsz: 4096,
			Filesz: 4096, Off: 1 << 30}
	}
	all := bytes.NewBuffer(bytes.Clone(threads.Bytes()))
	const ntFile = 0x46494c45
	noteOf(all, ntFile, append(list.Bytes(), names.Bytes()...))
	longNote := binary.LittleEndian.AppendUint32(nil, 5)
	longNote = binary.LittleEndian.AppendUint32(longNote, 60<<20)
	longNote = append(binary.LittleEndian.AppendUint32(longNote, uint32(elf.NT_PRSTATUS)), "CORE\x00\x00\x00\x00"...)
	for name, core := range map[string]hostileCore{
		"many of all": {notes: [][]byte{all.Bytes()}, loads: loads},
		"long notes": {notes: [][]byte{threads.Bytes()[:356], longNote, longNote, longNote, longNote, longNote, longNote,
			longNote}, hole: 60 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "core")
			core.write(t, file)
			var cmd *exec.Cmd
			var said bytes.Buffer
			took := 0
			// the command may end before this process has a CPU to look at it
			for tries := 0; tries < 100 && took == 0; tries++ {
				cmd = exec.CommandContext(t.Context(), "goprof", "dump", "--core", file)
				said.Reset()
				cmd.Stderr = &said
				took = peakOf(t, cmd)
			}
			if code := exit.Code(cmd.ProcessState.ExitCode()); code != exit.BadCore ||
				!strings.Contains(said.String(), "not a HotSpot JVM") {
				t.Errorf("exit code %d: %.2000s", code, said.String())
			}
			if took == 0 || took > mostForCore {
				t.Errorf("%d MB", took>>20)
			}
			t.Logf("%d MB", took>>20)
		})
	}
}

// peakOf runs a command. It returns the most memory that was seen in use, or 0 if it never saw the command. The
// number of wait4 would not do: the kernel counts the moment before exec, too (fs/exec.c, exec_mmap), so that number
// is at least what this process has.
func peakOf(t *testing.T, cmd *exec.Cmd) (peak int) {
	t.Helper()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		cmd.Wait()
	}()
	for status := fmt.Sprintf("/proc/%d/status", cmd.Process.Pid); ; {
		text, _ := os.ReadFile(status)
		if _, after, ok := strings.Cut(string(text), "VmHWM:"); ok {
			var kb int
			fmt.Sscan(after, &kb)
			peak = max(peak, kb<<10)
		}
		select {
		case <-ended:
			return peak
		case <-time.After(time.Millisecond):
		}
	}
}

// noteOf appends a note as the kernel writes it. The contents must have a multiple of 4 bytes.
func noteOf(b *bytes.Buffer, kind elf.NType, content []byte) {
	content = append(content, make([]byte, -len(content)&3)...)
	binary.Write(b, binary.LittleEndian, []uint32{5, uint32(len(content)), uint32(kind)})
	b.WriteString("CORE\x00\x00\x00\x00")
	b.Write(content)
}

// hostileCore is a core file in the making. A hole follows each segment of notes except the first.
type hostileCore struct {
	notes [][]byte
	loads []elf.Prog64
	hole  int64
}

func (h *hostileCore) write(t *testing.T, name string) {
	t.Helper()
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	n := len(h.notes) + len(h.loads)
	head := elf.Header64{Type: uint16(elf.ET_CORE), Machine: uint16(elf.EM_X86_64), Version: 1, Phoff: 64, Phentsize: 56,
		Phnum: uint16(min(n, 0xffff)), Ehsize: 64, Shentsize: 64}
	copy(head.Ident[:], "\x7fELF\x02\x01\x01")
	at := int64(64 + 56*n)
	if n >= 0xffff { // in this case the first section header has the number
		head.Shoff, head.Shnum = uint64(at), 1
		at += 64
	}
	var b bytes.Buffer
	binary.Write(&b, binary.LittleEndian, head)
	for i, note := range h.notes {
		size := int64(len(note))
		if i > 0 {
			size += h.hole
		}
		binary.Write(&b, binary.LittleEndian, elf.Prog64{Type: uint32(elf.PT_NOTE), Off: uint64(at), Filesz: uint64(size)})
		if _, err := f.WriteAt(note, at); err != nil {
			t.Fatal(err)
		}
		at += size
	}
	binary.Write(&b, binary.LittleEndian, h.loads)
	if n >= 0xffff {
		binary.Write(&b, binary.LittleEndian, elf.Section64{Info: uint32(n)})
	}
	if _, err := f.WriteAt(b.Bytes(), 0); err != nil {
		t.Fatal(err)
	}
	if err := f.Truncate(max(at, 1<<30+4096)); err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte("\x7fELF\x02\x01\x01"), 1<<30); err != nil {
		t.Fatal(err)
	}
}
