//go:build linux

package process

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"strings"
	"testing"

	"goprof/testdata/fuzzseed"
)

// TestWriteSeeds makes seeds from libc, the installed JVMs and the recorded walks (see package fuzzseed).
func TestWriteSeeds(t *testing.T) {
	fuzzseed.Making(t)
	for _, path := range oracleFiles(t, thisMachine) {
		name := strings.Trim(strings.NewReplacer("/usr/lib/jvm/", "", "/lib/server/", "-", "/lib/x86_64-linux-gnu/", "",
			"/usr", "").Replace(path), "/")
		seedsOfFrames(t, name, loadCFI(t, path))
	}
	seedOfVDSO(t)
	seedOfMaps(t)
	seedOfMiniDebug(t)
}

// seedsOfFrames takes functions with different instructions in their rules.
func seedsOfFrames(t *testing.T, name string, table *cfiTable) {
	const each, size = 12, 700
	seen := map[string]bool{}
	for off := uint64(0); len(seen) < each; {
		e, isFDE, next, err := table.readFDE(off)
		if next == 0 {
			break
		}
		if kinds := instructions(&e); isFDE && err == nil && next-off < size && !seen[kinds] {
			seen[kinds] = true
			frames := oneFunction(table, off)
			// The same function with both indexes: goprof's own, and the linker's.
			moved := &cfiTable{frames: frames, framesAddr: 0x1000}
			if moved.buildIndex() != nil {
				t.Fatalf("%s: function at %#x", name, off)
			}
			start := moved.index[0].start
			pairs := binary.LittleEndian.AppendUint32(nil, uint32(start-0x800))
			pairs = binary.LittleEndian.AppendUint32(pairs, uint32(0x1000+moved.index[0].off-0x800))
			fuzzseed.Write(t, ".", "FuzzCFI", fmt.Sprintf("%s-%d", name, len(seen)), frames, pairs, start+e.size/2)
		}
		off = next
	}
}

func instructions(e *fde) string {
	var set [256]bool
	for _, program := range [][]byte{e.cie.program, e.program} {
		m := cfiMachine{fde: e, addr: ^uint64(0), loc: e.start}
		m.reset()
		c := cursor{b: program}
		for c.left() > 0 && !c.bad {
			op := c.u8()
			kind := op
			if op >= 0x40 {
				kind = op & 0xc0
			}
			set[kind] = true
			if _, err := m.step(op, &c); err != nil {
				break
			}
		}
	}
	return fmt.Sprint(set, e.signal, e.fdeEnc)
}

// oneFunction makes a section with the FDE of one function, and its CIE.
func oneFunction(table *cfiTable, off uint64) []byte {
	cut := func(off uint64) []byte {
		_, _, _, next := entry(table.frames, table.framesAddr, off)
		return bytes.Clone(table.frames[off:next])
	}
	_, back, at, _ := entry(table.frames, table.framesAddr, off)
	section := cut(at - back)
	cieSize := len(section)
	section = append(section, cut(off)...)
	binary.LittleEndian.PutUint32(section[cieSize+4:], uint32(cieSize+4))
	return append(section, 0, 0, 0, 0)
}

func seedOfVDSO(t *testing.T) {
	p, err := Open(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	image, ok := p.Image(vdsoName)
	if !ok {
		t.Fatal("no vdso")
	}
	b := make([]byte, image.End-image.Start)
	if err := p.Read(image.Start, b); err != nil {
		t.Fatal(err)
	}
	fuzzseed.Write(t, ".", "FuzzELF", "vdso", bytes.TrimRight(b, "\x00"))
}

func seedOfMaps(t *testing.T) {
	b, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	self, _ := os.Executable()
	b = bytes.ReplaceAll(b, []byte(self), []byte("/opt/app/program"))
	fuzzseed.Write(t, ".", "FuzzMaps", "go-program", b)
}

// seedOfMiniDebug extracts the xz stream from a seed of FuzzELF.
func seedOfMiniDebug(t *testing.T) {
	text, err := os.ReadFile("testdata/fuzz/FuzzELF/mini-debug-info")
	if err != nil {
		t.Fatal(err)
	}
	var b []byte
	if _, err := fmt.Sscanf(strings.SplitN(string(text), "\n", 2)[1], "[]byte(%q)", &b); err != nil {
		t.Fatal(err)
	}
	f, err := readELF(bytes.NewReader(b), int64(len(b)), nil)
	if err != nil {
		t.Fatal(err)
	}
	packed, err := f.data(f.section(".gnu_debugdata"))
	if err != nil {
		t.Fatal(err)
	}
	fuzzseed.Write(t, ".", "FuzzUnpackXZ", "mini-debug-info", packed)
}
