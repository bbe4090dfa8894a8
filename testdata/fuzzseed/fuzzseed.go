// Package fuzzseed writes seeds for fuzzers out of what real programs are made of, in the
// form in which go test reads them. The seeds are committed; they are made again with
//
//	GOPROF_SEEDS=1 go test ./process ./vmstructs ./testdata/captured -run TestWriteSeeds
package fuzzseed

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Making skips a test that makes seeds, unless they are wanted.
func Making(t testing.TB) {
	t.Helper()
	if os.Getenv("GOPROF_SEEDS") == "" {
		t.Skip("makes seeds for fuzzers: set GOPROF_SEEDS")
	}
}

// Write writes one seed for a fuzzer of the package in dir, with the values that its
// function takes (internal/fuzz, encoding.go).
func Write(t testing.TB, dir, fuzzer, name string, values ...any) {
	t.Helper()
	var b strings.Builder
	b.WriteString("go test fuzz v1\n")
	for _, v := range values {
		switch v := v.(type) {
		case []byte:
			fmt.Fprintf(&b, "[]byte(%q)\n", v)
		case string:
			fmt.Fprintf(&b, "string(%q)\n", v)
		case byte: // also uint8
			fmt.Fprintf(&b, "byte(%q)\n", rune(v))
		default:
			fmt.Fprintf(&b, "%T(%v)\n", v, v)
		}
	}
	dir = filepath.Join(dir, "testdata", "fuzz", fuzzer)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name), []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}
