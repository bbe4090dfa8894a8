package redaction

import (
	"bytes"
	"compress/gzip"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"goprof/output"
)

// TestPackedTooMuch: a packed JFR file that unpacks to too much is refused, and not called cut off.
func TestPackedTooMuch(t *testing.T) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	z.Write([]byte("FLR\x00"))
	z.Write(make([]byte, 64<<20))
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "bomb.jfr.gz")
	if err := os.WriteFile(path, packed.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	in, err := Open(path)
	if err == nil {
		in.Close()
	}
	if bad := new(output.BadFile); !errors.As(err, &bad) || !bad.TooMuch {
		t.Errorf("%d bytes: %v", packed.Len(), err)
	}
}
