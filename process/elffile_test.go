package process

import (
	"bytes"
	"debug/elf"
	"encoding/hex"
	"errors"
	"path/filepath"
	"strings"
	"testing"
)

func TestReadELFAgainstDebugELF(t *testing.T) {
	for _, path := range oracleFiles(t, thisMachine) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			std, err := elf.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			defer std.Close()
			f := loadELF(t, path)
			if f.machine != std.Machine || len(f.progs) != len(std.Progs) || len(f.sections) != len(std.Sections) {
				t.Fatalf("%v with %d segments and %d sections, want %v with %d and %d",
					f.machine, len(f.progs), len(f.sections), std.Machine, len(std.Progs), len(std.Sections))
			}
			if !HasSection(f.r, int64(f.size), ".eh_frame") || HasSection(f.r, int64(f.size), ".svm_heap") ||
				HasSection(f.r, 40, ".eh_frame") {
				t.Error("HasSection")
			}
			for i, s := range std.Sections {
				if f.sections[i].name != s.Name || f.sections[i].Addr != s.Addr ||
					f.sections[i].Size != s.FileSize && s.Type != elf.SHT_NOBITS {
					t.Errorf("section %d: %+v, want %+v", i, f.sections[i], s.SectionHeader)
				}
			}
			for _, p := range std.Progs {
				if p.Type != elf.PT_LOAD || p.Filesz == 0 {
					continue
				}
				if off, left, ok := f.offset(p.Vaddr + 1); !ok || off != p.Off+1 || left != p.Filesz-1 {
					t.Errorf("offset(%#x) = %#x, %#x, %v", p.Vaddr+1, off, left, ok)
				}
				if bias, ok := f.bias(0x7f0000000000+p.Vaddr&^4095, p.Off&^4095, p.Filesz); p.Flags&elf.PF_X != 0 &&
					(!ok || bias != 0x7f0000000000) {
					t.Errorf("bias = %#x, %v", bias, ok)
				}
			}
			id := run(t, "readelf", "-n", path)
			if _, want, ok := strings.Cut(id, "Build ID: "); ok {
				want, _, _ = strings.Cut(want, "\n")
				if got := hex.EncodeToString(f.buildID()); got != want {
					t.Errorf("build id %s, want %s", got, want)
				}
			}
		})
	}
}

// fuzzFiles returns the fuzzer's bytes as the image, and as each debug file.
type fuzzFiles struct {
	arrayMemory
	b []byte
}

type fuzzFile struct{ *bytes.Reader }

func (fuzzFile) Close() error { return nil }

func (f *fuzzFiles) openImage(*group) (imageFile, int64, error) {
	return fuzzFile{bytes.NewReader(f.b)}, int64(len(f.b)), nil
}

func (f *fuzzFiles) openDebug(string, debugRoot) (imageFile, int64, error) { return f.openImage(nil) }
func (f *fuzzFiles) inRoot(path string) string                             { return path }

// FuzzELF loads a hostile file as an image, and calls all functions on it.
func FuzzELF(f *testing.F) {
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > 1<<20 {
			return
		}
		exec := Mapping{Start: 0x10000, End: 0x10000 + uint64(len(b)) + 4096, Perm: PermRead | PermExec, Inode: 1,
			Path: "/lib/x.so"}
		l := &loaded{
			group: group{Image: Image{Name: "x.so", Path: "/lib/x.so"}, first: exec, all: []Mapping{exec},
				exec: []Mapping{exec}},
			files: &fuzzFiles{b: b},
		}
		panicked := l.with(func(f *elfFile) {
			l.readSymbols(f)
			f.buildID()
			readCFI(f)
			l.markers([]byte{0x90})
		})
		if errors.Is(panicked, errPanicked) {
			t.Fatal(panicked) // with has recovered from the panic, but the fuzzer must see it
		}
		for _, pc := range []uint64{0x10000, 0x10100, 0x11000, 0x12345} {
			l.code(pc, pc)
		}
		l.global("main")
	})
}
