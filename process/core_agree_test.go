package process

import (
	"debug/elf"
	"encoding/binary"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
)

// TestUnprovenFiles: a core lacks memory that a file without a build id may replace. goprof reads the file, and names
// it, if the words in the core equal the file's, or differ from them by one common number. goprof does not read a file
// that only looks similar.
func TestUnprovenFiles(t *testing.T) {
	root := t.TempDir()
	words := make([]byte, 16*4096)
	r := rand.New(rand.NewPCG(1, 2))
	for i := 0; i < len(words); i += 8 {
		binary.LittleEndian.PutUint64(words[i:], r.Uint64()|1)
	}
	if err := os.WriteFile(filepath.Join(root, "archive"), words, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		change  func(i int, w uint64) uint64
		percent int // 0: goprof does not read the file
	}{
		"the same":           {func(_ int, w uint64) uint64 { return w }, 100},
		"all moved":          {func(_ int, w uint64) uint64 { return w + 0x7000_0000 }, 100},
		"a tenth changed":    {func(i int, w uint64) uint64 { return other(r, w, i%10 == 0) }, 90},
		"two thirds changed": {func(i int, w uint64) uint64 { return other(r, w, i%3 > 0) }, 0},
		"another file":       {func(_ int, w uint64) uint64 { return other(r, w, true) }, 0},
	} {
		f := &coreFixture{}
		f.thread(7, 11, 0x10010, 0x20000)
		dumped := make([]byte, 2*4096)
		for i := 0; i < len(dumped); i += 8 {
			binary.LittleEndian.PutUint64(dumped[i:], c.change(i/8, binary.LittleEndian.Uint64(words[i:])))
		}
		f.load(0x10000, 0x2000, elf.PF_R|elf.PF_W, dumped)
		f.load(0x12000, 0xe000, elf.PF_R, nil)
		f.files(mappedPart{0x10000, 0x20000, 0, "/archive"})
		core := f.openBelow(t, root)
		var b [8]byte
		err := core.Read(0x13000, b[:])
		list := core.Unproven()
		if read := err == nil && len(list) == 1 && list[0].Path == "/archive"; read != (c.percent > 0) {
			t.Errorf("%s: %v, %+v, missing %+v", name, err, list, core.Missing())
		} else if read && list[0].Percent != c.percent {
			t.Errorf("%s: %d %%", name, list[0].Percent)
		}
	}
}

// other returns a word other than w if wanted is true, else w.
func other(r *rand.Rand, w uint64, wanted bool) uint64 {
	if wanted {
		return r.Uint64()
	}
	return w
}
