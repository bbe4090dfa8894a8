//go:build linux

package process

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func mapsOf(t *testing.T) (m *mapsFile, write func(text string)) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "maps")
	write = func(text string) {
		t.Helper()
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("")
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return &mapsFile{File: f}, write
}

// TestMapsChangeAndReturn: a library is mapped after sum and before parse, and then unmapped. The hash of parse is that
// of the text with the library. So the text without the library counts as changed.
func TestMapsChangeAndReturn(t *testing.T) {
	const without = "1000-2000 r-xp 00000000 08:01 5 /lib/a.so\n"
	const with = without + "5000-6000 r-xp 00000000 08:01 6 /lib/b.so\n"
	m, write := mapsOf(t)
	write(without)
	before, err := m.sum()
	if err != nil || before == 0 {
		t.Fatal(before, err)
	}
	write(with)
	ms, parsed, err := m.parse()
	if err != nil || len(ms) != 2 || parsed == 0 || parsed == before {
		t.Errorf("%d mappings, sum %d after %d, %v", len(ms), parsed, before, err)
	}
	if again, err := m.sum(); err != nil || again != parsed {
		t.Errorf("summed %d, parsed %d, %v", again, parsed, err)
	}
	write(without)
	if again, err := m.sum(); err != nil || again != before {
		t.Errorf("%d and %d of one text, %v", before, again, err)
	}
	write("")
	if _, err := m.sum(); !errors.Is(err, ErrGone) {
		t.Errorf("of no text: %v", err)
	}
}

// TestLongMaps: the whole text is hashed even if only a part is parsed. A text that is too long has no hash.
func TestLongMaps(t *testing.T) {
	m, write := mapsOf(t)
	line := make([]byte, maxMapsLine)
	write("1000-2000 r-xp 00000000 08:01 5 /lib/a.so\n" + string(line) + "\n3000-4000 r--p 0 0:0 0\n")
	ms, parsed, err := m.parse()
	if sum, _ := m.sum(); len(ms) != 1 || !errors.Is(err, ErrTooLong) || parsed != sum || sum == 0 {
		t.Errorf("%d mappings, sums %d and %d, %v", len(ms), parsed, sum, err)
	}
	if err := os.Truncate(m.Name(), maxMapsText); err != nil {
		t.Fatal(err)
	}
	if sum, err := m.sum(); sum != 0 || err != nil {
		t.Errorf("too long: %d, %v", sum, err)
	}
	if _, _, err := m.parse(); !errors.Is(err, ErrTooLong) {
		t.Errorf("too long: %v", err)
	}
}
