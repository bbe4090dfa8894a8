package snap

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"goprof/output"
)

// made returns a snap with one part, and with a missing part.
func made(t testing.TB) []byte {
	t.Helper()
	var b bytes.Buffer
	w := NewWriter(&b)
	err := w.Add("dump.txt", func(to io.Writer) error { _, err := io.WriteString(to, "main\n"); return err })
	if err != nil {
		t.Fatal(err)
	}
	c := &Contents{Goprof: "1", PID: 7, MainClass: "shop.Main", Start: time.Unix(0, 0), Parts: []Part{
		{Name: "dump", What: "threads", State: Kept, Files: []string{"dump.txt"}},
		{Name: "heap", What: "what fills the heap", State: Missing, Why: "it did not answer\x1b[2J"}}}
	if err := w.Close(c); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func read(t testing.TB, b []byte) *Reader {
	t.Helper()
	r, err := Read(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestRoundTrip(t *testing.T) {
	b := made(t)
	if !Is(b) {
		t.Errorf("it begins with %q", b[:4])
	}
	r := read(t, b)
	for name, want := range map[string]string{"dump.txt": "main\n", ReadmeFile: "missing  heap"} {
		file, err := r.File(name)
		if err != nil {
			t.Fatal(err)
		}
		if text, err := io.ReadAll(file); err != nil || !strings.Contains(string(text), want) ||
			strings.Contains(string(text), "\x1b") {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
	c, err := r.Contents()
	if err != nil || c.PID != 7 || len(c.Lacking()) != 1 {
		t.Errorf("%+v, %v", c, err)
	}
	for name, why := range map[string]string{"heap.json": "did not answer", "heapless.json": "holds no heapless.json"} {
		_, err := r.File(name)
		if none := (*NoPart)(nil); !errors.As(err, &none) || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// zipOf returns a zip with these files.
func zipOf(t *testing.T, files map[string][]byte) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for name, content := range files {
		w, err := z.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		w.Write(content)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// refused fails the test unless an error says that a file has too much.
func refused(t *testing.T, what string, err error) {
	t.Helper()
	if bad := (*output.BadFile)(nil); !errors.As(err, &bad) || !bad.TooMuch {
		t.Errorf("%s: %v", what, err)
	}
}

// TestBombs: a zip that unpacks to too much is refused, even if it claims a smaller size.
func TestBombs(t *testing.T) {
	bomb := zipOf(t, map[string][]byte{"dump.txt": make([]byte, 96<<20)})
	_, err := read(t, bomb).File("dump.txt")
	refused(t, "an honest bomb", err)

	// The directory claims 5 bytes. Go's reader then returns all that there is.
	at := bytes.LastIndex(bomb, []byte("PK\x01\x02"))
	binary.LittleEndian.PutUint32(bomb[at+24:], 5)
	file, err := read(t, bomb).File("dump.txt")
	if err == nil {
		_, err = io.Copy(io.Discard, file)
	}
	if bad := (*output.BadFile)(nil); !errors.As(err, &bad) {
		t.Errorf("a bomb that lies: %v", err)
	}

	table := zipOf(t, map[string][]byte{ContentsFile: bytes.Repeat([]byte(" "), maxContents+1)})
	_, err = read(t, table).Contents()
	refused(t, "a long table of contents", err)
}

func TestManyFiles(t *testing.T) {
	files := map[string][]byte{}
	for i := range maxFiles + 1 {
		files[fmt.Sprint(i)] = nil
	}
	b := zipOf(t, files)
	_, err := Read(bytes.NewReader(b), int64(len(b)))
	refused(t, "many files", err)
	clear(files)
	for i := range 40 {
		files[fmt.Sprint(i, strings.Repeat("n", 60_000))] = nil
	}
	b = zipOf(t, files)
	_, err = Read(bytes.NewReader(b), int64(len(b)))
	refused(t, "long names", err)
}

func TestNoSnap(t *testing.T) {
	b := zipOf(t, map[string][]byte{"a.txt": nil})
	if _, err := read(t, b).File("dump.txt"); err == nil || !strings.Contains(err.Error(), "none of goprof snap") {
		t.Error(err)
	}
	if _, err := Read(strings.NewReader("PK\x03\x04"), 4); !errors.As(err, new(*output.BadFile)) {
		t.Error(err)
	}
}

// FuzzRead: reading any file ends within the bounds, with or without an error.
func FuzzRead(f *testing.F) {
	b := made(f)
	f.Add(b)
	f.Add(b[:len(b)/2])
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := Read(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			return
		}
		r.Contents()
		for _, name := range []string{"dump.txt", ReadmeFile, "heap.json"} {
			file, err := r.File(name)
			if err != nil {
				continue
			}
			if n, _ := io.Copy(io.Discard, file); n > freeUnpacked+unpackedOfByte*int64(len(b)) {
				t.Errorf("%d bytes of %d", n, len(b))
			}
			file.Close()
		}
	})
}
