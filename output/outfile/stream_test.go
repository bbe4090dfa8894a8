//go:build linux

package outfile

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// nobody is a user other than the test's.
const nobody = 65534

// TestForeignThingsAreRefused: in a folder like /tmp, goprof neither writes to nor opens anything of another user. It
// does write to what belongs to its own user.
func TestForeignThingsAreRefused(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to make what is another user's")
	}
	for what, make := range map[string]func(name string) error{
		"pipe":             func(name string) error { return unix.Mkfifo(name, 0o666) },
		"file":             func(name string) error { return os.WriteFile(name, []byte("theirs"), 0o666) },
		"socket":           func(name string) error { return unix.Mknod(name, unix.S_IFSOCK|0o666, 0) },
		"device":           func(name string) error { return unix.Mknod(name, unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3))) },
		"link to a folder": func(name string) error { return os.Symlink("/", name) },
	} {
		t.Run(what, func(t *testing.T) {
			for _, at := range []struct {
				name   string
				mode   os.FileMode
				folder int // the owner of the folder
				owner  int
				want   error
			}{
				{"in a folder like /tmp", 0o777 | os.ModeSticky, 0, nobody, ErrForeign},
				{"in a group's folder like it", 0o770 | os.ModeSticky, 0, nobody, ErrForeign},
				{"ours there", 0o777 | os.ModeSticky, nobody, 0, nil},
				{"the folder's owner's there", 0o777 | os.ModeSticky, nobody, nobody, nil},
				{"in an ordinary folder", 0o755, nobody, nobody, nil},
			} {
				if what == "link to a folder" {
					at.want = ErrLink
				}
				dir := t.TempDir()
				name := filepath.Join(dir, "thing")
				err := errors.Join(make(name), os.Lchown(name, at.owner, at.owner),
					os.Chown(dir, at.folder, at.folder), os.Chmod(dir, at.mode))
				if errors.Is(err, unix.EPERM) {
					t.Skipf("only root may make devices: %v", err)
				} else if err != nil {
					t.Fatal(err)
				}
				var read chan string
				if what == "pipe" && at.want == nil {
					read = reader(name)
				}
				f, err := Reserve(name)
				switch {
				case what == "socket" && at.want == nil:
					if err == nil || errors.Is(err, ErrForeign) {
						t.Errorf("%s: %v", at.name, err)
					}
					continue
				case !errors.Is(err, at.want):
					t.Errorf("%s: %v, want %v", at.name, err, at.want)
				case err != nil:
					if at.want == ErrForeign && !strings.Contains(err.Error(), "user 65534's") {
						t.Errorf("%s: %v does not say whose it is", at.name, err)
					}
					continue
				}
				if _, err := f.Write(says("profile")); err != nil {
					t.Errorf("%s: %v", at.name, err)
				}
				if read != nil {
					if got := <-read; got != "profile" {
						t.Errorf("%s: read %q", at.name, got)
					}
				}
			}
		})
	}
}

// reader reads a pipe to its end.
func reader(name string) chan string {
	read := make(chan string, 1)
	go func() {
		b, _ := os.ReadFile(name)
		read <- string(b)
	}()
	return read
}

// TestPipe: a pipe is opened when it is reserved, so it cannot be replaced afterwards. Its reader sees the end as soon
// as everything is written.
func TestPipe(t *testing.T) {
	name := filepath.Join(t.TempDir(), "pipe")
	if err := unix.Mkfifo(name, 0o600); err != nil {
		t.Fatal(err)
	}
	read := reader(name)
	f, err := Reserve(name)
	if err != nil || !f.IsStream() {
		t.Fatal(err)
	}
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("profile ", 100_000) // more than fits into a pipe
	if _, err := f.Write(says(long)); err != nil {
		t.Error(err)
	}
	select {
	case got := <-read:
		if got != long {
			t.Errorf("read %d bytes", len(got))
		}
	case <-time.After(time.Minute):
		t.Error("the reader saw no end")
	}
	if got, _ := os.ReadFile(name); string(got) != "precious" {
		t.Errorf("what took the pipe's name holds %q", got)
	}
}

// TestPipeWithoutReader: goprof does not wait forever for a reader.
func TestPipeWithoutReader(t *testing.T) {
	name := filepath.Join(t.TempDir(), "pipe")
	if err := unix.Mkfifo(name, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Reserve(name); !errors.Is(err, ErrNoReader) {
		t.Errorf("got %v", err)
	}
}

func TestDescriptorNames(t *testing.T) {
	for name, want := range map[string]int{
		"/dev/stdout": 1, "/dev/stderr": 2, "/dev/fd/63": 63, "/proc/self/fd/5": 5,
		"/dev/fd/0": 0, "/dev/fd/-1": 0, "/dev/fd/05": 0, "/dev/fd/5/": 0, "/dev/fd/": 0, "/proc/1/fd/5": 0, "/dev/stdin": 0,
		"out": 0,
	} {
		if n, ok := descriptor(name); ok != (want != 0) || ok && n != want {
			t.Errorf("%s: %d, %v", name, n, ok)
		}
	}
}
