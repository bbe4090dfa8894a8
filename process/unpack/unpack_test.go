package unpack

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// content is 300 KB: zeros, words that repeat, and bytes that cannot be compressed.
func content() []byte {
	b := make([]byte, 100<<10)
	b = append(b, bytes.Repeat([]byte("core file "), 10<<10)...)
	r := rand.NewChaCha8([32]byte{1})
	noise := make([]byte, 100<<10)
	r.Read(noise)
	return append(b, noise...)
}

func gzipped(b []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	w.Write(b)
	w.Close()
	return out.Bytes()
}

func zstded(b []byte) []byte {
	w, _ := zstd.NewWriter(nil)
	return w.EncodeAll(b, nil)
}

// lz4ed returns a frame of stored blocks, and of one block that repeats "core file " with matches that overlap their
// own output.
func lz4ed(b []byte) []byte {
	out := append([]byte{}, lz4Magic...)
	out = append(out, 1<<6, 4<<4, 0) // version 1, blocks of 64 KB, a checksum that goprof does not read
	for len(b) > 0 {
		n := min(len(b), 64<<10)
		out = append(out, byte(n), byte(n>>8), byte(n>>16), 0x80)
		out, b = append(out, b[:n]...), b[n:]
	}
	// Ten literal bytes. Then a match of 10+15+4+255+11 = 295 bytes that begins ten bytes back. Then five bytes.
	block := append([]byte{0xaf}, "core file "...)
	block = append(block, 10, 0, 255, 21)
	block = append(append(block, 0x50), "the e"...)
	out = append(append(out, byte(len(block)), 0, 0, 0), block...)
	return append(out, 0, 0, 0, 0)
}

func TestOpen(t *testing.T) {
	plain := content()
	lz4Tail := append(bytes.Repeat([]byte("core file "), 31)[:305], "the e"...)
	for name, c := range map[string]struct{ packed, want []byte }{
		"":     {plain, plain},
		"gzip": {gzipped(plain), plain},
		"zstd": {zstded(plain), plain},
		"lz4":  {lz4ed(plain), append(bytes.Clone(plain), lz4Tail...)},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "core")
			if err := os.WriteFile(file, c.packed, 0o600); err != nil {
				t.Fatal(err)
			}
			f, err := Open(file)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			got, err := io.ReadAll(io.NewSectionReader(f, 0, f.Size))
			if err != nil || !bytes.Equal(got, c.want) || f.Packed != name {
				t.Errorf("%d bytes, want %d; %q; %v", len(got), len(c.want), f.Packed, err)
			}
			if name == "" {
				return
			}
			// A file whose end is missing yields its contents so far, and an error.
			if err := os.WriteFile(file, c.packed[:len(c.packed)-len(c.packed)/3], 0o600); err != nil {
				t.Fatal(err)
			}
			cut, err := Open(file)
			if err == nil {
				t.Fatal("it is cut off, and nobody says so")
			}
			if cut == nil {
				return
			}
			defer cut.Close()
			got, _ = io.ReadAll(io.NewSectionReader(cut, 0, cut.Size))
			if len(got) >= len(c.want) || !bytes.HasPrefix(c.want, got) {
				t.Errorf("%d bytes of a file that is cut off", len(got))
			}
		})
	}
}

// zstdOfNothing is the output of "zstd </dev/null", without a checksum: a frame of one empty block.
var zstdOfNothing = []byte{0x28, 0xb5, 0x2f, 0xfd, 0x20, 0x00, 0x01, 0x00, 0x00}

func TestRefused(t *testing.T) {
	dir := t.TempDir()
	if _, err := Open(dir); !errors.Is(err, ErrNotRegular) {
		t.Error(err)
	}
	xz := filepath.Join(dir, "xz")
	os.WriteFile(xz, []byte("\xfd7zXZ\x00..."), 0o600)
	if _, err := Open(xz); !errors.Is(err, ErrXZ) {
		t.Error(err)
	}
	for name, b := range map[string][]byte{"gzip": gzipped(nil), "zstd": zstdOfNothing,
		"lz4": append(bytes.Clone(lz4Magic), 1<<6, 4<<4, 0, 0, 0, 0, 0)} {
		empty := filepath.Join(dir, name)
		os.WriteFile(empty, b, 0o600)
		if f, err := Open(empty); f != nil || err == nil {
			t.Errorf("%s of nothing: %v, %v", name, f, err)
		}
	}
	if f, err := unpackTo(bytes.NewReader(make([]byte, 1<<20)), 1<<19); f != nil || !errors.Is(err, ErrTooLarge) {
		t.Error(f, err)
	}
}

func FuzzLZ4(f *testing.F) {
	f.Add(lz4ed([]byte("some bytes")))
	f.Fuzz(func(t *testing.T, b []byte) {
		n, _ := io.Copy(io.Discard, io.LimitReader(newLZ4(bytes.NewReader(b)), 64<<20))
		if n > int64(len(b))*300+lz4Most {
			t.Errorf("%d bytes of %d", n, len(b))
		}
	})
}
