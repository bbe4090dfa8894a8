package outfile

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// TestGrowing: a file gets its name by Publish, and continues to grow under this name. An older file stays until then.
func TestGrowing(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "x.jfr")
	if err := os.WriteFile(name, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := Reserve(name)
	if err != nil {
		t.Fatal(err)
	}
	g := f.Grow()
	if err := g.Publish(); err != nil || len(entries(t, dir)) != 1 { // nothing has been written yet
		t.Errorf("%v, %q", err, entries(t, dir))
	}
	io.WriteString(g, "one ")
	if got, _ := os.ReadFile(name); string(got) != "old" {
		t.Errorf("before Publish there is %q", got)
	}
	if err := g.Publish(); err != nil {
		t.Fatal(err)
	}
	io.WriteString(g, "two")
	if got, _ := os.ReadFile(name); string(got) != "one two" {
		t.Errorf("it is %q", got)
	}
	if err := errors.Join(g.Truncate(4), second(g.Seek(4, io.SeekStart))); err != nil {
		t.Fatal(err)
	}
	io.WriteString(g, "three")
	if err := errors.Join(g.Close(), g.Close()); err != nil {
		t.Fatal(err)
	}
	if got, _ := os.ReadFile(name); string(got) != "one three" || len(entries(t, dir)) != 1 {
		t.Errorf("it is %q, and there are %q", got, entries(t, dir))
	}
	if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info, err)
	}
	if _, err := g.Write([]byte("late")); err == nil {
		t.Error("it is written after its end")
	}
}

func second[T any](_ T, err error) error { return err }

// TestGrowingIsGone: a file that was never published is removed.
func TestGrowingIsGone(t *testing.T) {
	dir := t.TempDir()
	f, err := Reserve(filepath.Join(dir, "x.jfr"))
	if err != nil {
		t.Fatal(err)
	}
	g := f.Grow()
	io.WriteString(g, "one")
	if err := g.Close(); err != nil || len(entries(t, dir)) != 0 {
		t.Errorf("%v, left over: %q", err, entries(t, dir))
	}
}

// TestGrowingNumbered: a file under a name that goprof chose replaces no other. A link that appears late is not
// followed.
func TestGrowingNumbered(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "out.pb.gz")
	f, err := ReserveNumbered(name, nil)
	if err != nil {
		t.Fatal(err)
	}
	g := f.Grow()
	io.WriteString(g, "one")
	if err := os.Symlink(filepath.Join(dir, "elsewhere"), name); err != nil {
		t.Skip("no links here: ", err)
	}
	if err := errors.Join(g.Publish(), g.Publish(), g.Close()); err != nil {
		t.Fatal(err)
	}
	if got := entries(t, dir); len(got) != 2 || filepath.Base(g.Name()) != "out.1.pb.gz" {
		t.Errorf("%s, there are %q", g.Name(), got)
	}
}

// TestSpool: a spool has no name.
func TestSpool(t *testing.T) {
	dir := t.TempDir()
	f, err := Reserve(filepath.Join(dir, "x.pb.gz"))
	if err != nil {
		t.Fatal(err)
	}
	spool, err := f.Spool()
	if err != nil {
		t.Fatal(err)
	}
	defer spool.Close()
	if got := entries(t, dir); len(got) != 0 {
		t.Errorf("left over: %q", got)
	}
	io.WriteString(spool, "one")
	if b := make([]byte, 3); second(spool.ReadAt(b, 0)) != nil || !bytes.Equal(b, []byte("one")) {
		t.Errorf("it holds %q", b)
	}
}

// TestGrowingStream: a pipe gets everything at once. Nothing can be undone.
func TestGrowingStream(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	g := (&File{name: "a pipe", stream: w}).Grow()
	io.WriteString(g, "one")
	if err := g.Publish(); err != nil || g.Truncate(0) == nil {
		t.Errorf("%v, or it was cut off", err)
	}
	if err := g.Close(); err != nil {
		t.Fatal(err)
	}
	if got, _ := io.ReadAll(r); string(got) != "one" {
		t.Errorf("it got %q", got)
	}
}
