package leaf

import (
	"os"
	"path/filepath"
	"testing"

	"goprof/testdata/captured"
	"goprof/vmstructs"
)

// recordings returns the recordings of a folder of the walker's testdata.
func recordings(t testing.TB, folder string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "testdata", folder, "*.walks"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no recordings in testdata/%s: %v", folder, err)
	}
	return files
}

func recorded(t testing.TB, file string) (*captured.Recording, *Finder) {
	t.Helper()
	in, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	rec, err := captured.Load(in)
	if err != nil {
		t.Fatal(err)
	}
	vm, err := vmstructs.Open(rec)
	if err != nil {
		t.Fatal(err)
	}
	return rec, New(rec, vm)
}

// questionIn makes a question about code that a test has made.
func questionIn(f *Finder, b *vmstructs.Blob, m *codeMap) *question {
	return &question{Finder: f, blob: b, code: m}
}
