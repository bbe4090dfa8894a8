package outfile

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

func says(text string) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := io.WriteString(w, text)
		return err
	}
}

// entries lists a folder. With it, tests check that nothing is left over.
func entries(t *testing.T, dir string) (names []string) {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		names = append(names, e.Name())
	}
	return names
}

func write(t *testing.T, f *File, err error, text string) string {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	name, err := f.Write(says(text))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(name); err != nil || string(got) != text {
		t.Fatalf("%s holds %q, %v; want %q", name, got, err, text)
	}
	return name
}

func TestNamedFileIsReplacedWhole(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "a.collapsed")
	f, err := Reserve(name)
	if got := entries(t, dir); len(got) != 0 {
		t.Fatalf("reserving left %q", got)
	}
	write(t, f, err, "old")
	if info, err := os.Stat(name); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}

	broken := errors.New("broken half way")
	_, err = f.Write(func(w io.Writer) error {
		io.WriteString(w, "half")
		return broken
	})
	if !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	if got, _ := os.ReadFile(name); string(got) != "old" {
		t.Errorf("a failed write left %q", got)
	}
	write(t, f, nil, "new")
	if got := entries(t, dir); len(got) != 1 {
		t.Errorf("left over: %q", got)
	}
}

func TestNumberedFileReplacesNothing(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "out.collapsed")
	if err := os.Symlink("nowhere", filepath.Join(dir, "out.2.collapsed")); err != nil {
		t.Skip("no links here: ", err)
	}
	// this belongs to a renamed file
	if err := os.WriteFile(filepath.Join(dir, "out.3.summary.json"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"out.collapsed", "out.1.collapsed", "out.4.collapsed"} {
		f, err := ReserveNumbered(name, func(file string) string {
			return strings.TrimSuffix(file, ".collapsed") + ".summary.json"
		})
		if got := write(t, f, err, string(rune('a'+i))); filepath.Base(got) != want {
			t.Errorf("wrote %s, want %s", got, want)
		}
	}
	if got, _ := os.ReadFile(name); string(got) != "a" {
		t.Errorf("the first file holds %q", got)
	}
	if got := entries(t, dir); len(got) != 5 {
		t.Errorf("there are %q", got)
	}
}

func TestLinkIsRefused(t *testing.T) {
	dir := t.TempDir()
	secret, link := filepath.Join(dir, "secret"), filepath.Join(dir, "link")
	if err := os.WriteFile(secret, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(secret, link); err != nil {
		t.Skip("no links here: ", err)
	}
	if _, err := Reserve(link); !errors.Is(err, ErrLink) {
		t.Errorf("got %v", err)
	}
	// A link that appears after the check is replaced, not followed.
	late := filepath.Join(dir, "late")
	f, err := Reserve(late)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(secret, late); err != nil {
		t.Fatal(err)
	}
	write(t, f, nil, "profile")
	if got, _ := os.ReadFile(secret); string(got) != "precious" {
		t.Errorf("written through the link: %q", got)
	}
}

func TestUnwritableIsToldBefore(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for what, name := range map[string]string{
		"missing folder":         filepath.Join(dir, "no", "out"),
		"a folder":               dir,
		"a file for a folder":    filepath.Join(file, "out"),
		"a name that is no name": filepath.Join(dir, string(make([]byte, 300))),
	} {
		_, err := Reserve(name)
		var fe *FileError
		if !errors.As(err, &fe) || fe.Name != name {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestFullDisk(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("needs /dev/full: ", err)
	}
	f, err := Reserve("/dev/full")
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.Write(says("text"))
	var fe *FileError
	if !errors.As(err, &fe) || fe.Name != "/dev/full" {
		t.Errorf("got %v", err)
	}
	if info, err := os.Lstat("/dev/full"); err != nil || info.Mode()&fs.ModeCharDevice == 0 {
		t.Errorf("/dev/full is now %v, %v", info, err)
	}
}

func TestExpand(t *testing.T) {
	at := time.Date(2026, 11, 21, 6, 5, 4, 0, time.UTC)
	for in, want := range map[string]string{
		"out.collapsed": "out.collapsed",
		"p%p-%t.txt":    "p12-20261121-060504.txt",
		"100%%p%p":      "100%p12",
		"%x 50%":        "%x 50%",
	} {
		if got := Expand(in, 12, at); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

// TestFolderIsExchanged: a user who moves the folder and puts a link in its place cannot lead a file elsewhere.
func TestFolderIsExchanged(t *testing.T) {
	for name, write := range map[string]func(*File) error{
		"written": func(f *File) error { _, err := f.Write(says("new")); return err },
		"growing": func(f *File) error {
			g := f.Grow()
			_, err := g.Write([]byte("new"))
			return errors.Join(err, g.Publish(), g.Close())
		},
		"deleted": func(f *File) error {
			_, err := f.Write(says("new"))
			return errors.Join(err, f.Made().Delete())
		},
	} {
		for _, numbered := range []bool{false, true} {
			dir := t.TempDir()
			victim, folder, moved := filepath.Join(dir, "victim"), filepath.Join(dir, "d"), filepath.Join(dir, "d.old")
			err := errors.Join(os.Mkdir(victim, 0o700), os.Mkdir(folder, 0o700))
			out := filepath.Join(folder, "out.collapsed")
			f, reserveErr := Reserve(out)
			if numbered {
				f, reserveErr = ReserveNumbered(out, func(name string) string { return name + ".beside" })
			}
			err = errors.Join(err, reserveErr, os.WriteFile(filepath.Join(victim, "out.collapsed"), []byte("precious"), 0o600),
				os.Rename(folder, moved), os.Symlink("victim", folder))
			if err != nil {
				t.Fatal(err)
			}
			if err := write(f); err != nil {
				t.Errorf("%s, numbered %v: %v", name, numbered, err)
			}
			if got, err := os.ReadFile(filepath.Join(victim, "out.collapsed")); string(got) != "precious" ||
				len(entries(t, victim)) != 1 {
				t.Errorf("%s, numbered %v: %q in %q, %v", name, numbered, got, entries(t, victim), err)
			}
			want := 1
			if name == "deleted" {
				want = 0
			}
			if got := entries(t, moved); len(got) != want {
				t.Errorf("%s, numbered %v: %q in the folder", name, numbered, got)
			}
		}
	}
}

// TestLeftover: the name of a temporary file contains the final name.
func TestLeftover(t *testing.T) {
	f, err := Reserve(filepath.Join(t.TempDir(), "out.jfr"))
	if err != nil {
		t.Fatal(err)
	}
	temp, err := f.temp()
	if err != nil {
		t.Fatal(err)
	}
	if name, ok := Leftover(temp.base); !ok || name != "out.jfr" {
		t.Errorf("%s is of %q, %v", temp.base, name, ok)
	}
	for _, other := range []string{"out.jfr", ".out.jfr", ".out.jfr.tmp", ".out.jfr.x.tmp", "out.jfr.1.tmp"} {
		if name, ok := Leftover(other); ok {
			t.Errorf("%s is taken for %q", other, name)
		}
	}
}
