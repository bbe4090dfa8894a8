//go:build linux

package process

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"
)

// TestTraps: a target may have put traps in place of its libraries. A goprof that can open files only by name opens
// none of them, does not block, and still finds everything that is in memory.
func TestTraps(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "outside")
	if err := os.WriteFile(outside, []byte("outside"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, trap := range map[string]func(path string) error{
		"pipe":      func(path string) error { return unix.Mkfifo(path, 0o666) },
		"directory": func(path string) error { return os.Mkdir(path, 0o755) },
		"socket":    func(path string) error { return unix.Mknod(path, unix.S_IFSOCK|0o666, 0) },
		"endless device": func(path string) error {
			return unix.Mknod(path, unix.S_IFCHR|0o666, int(unix.Mkdev(1, 5))) // /dev/zero
		},
		"terminal":        func(path string) error { return unix.Mknod(path, unix.S_IFCHR|0o666, int(unix.Mkdev(5, 0))) },
		"link to itself":  func(path string) error { return os.Symlink(path, path) },
		"link to a pipe":  func(path string) error { return os.Symlink(path+".pipe", path) },
		"link to another": func(path string) error { return os.Symlink(outside, path) },
		"link to proc":    func(path string) error { return os.Symlink("/proc/self/exe", path) },
		"sparse": func(path string) error {
			return os.WriteFile(path, nil, 0o600) // the test makes it larger below
		},
		"sparse library": func(path string) error { return os.WriteFile(path, hugeELF(), 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path, helper := buildLibrary(t, dir)
			if err := unix.Mkfifo(path+".pipe", 0o666); err != nil {
				t.Fatal(err)
			}
			ch := startChild(t, "map "+path, nil)
			ch.goOn()
			ch.line()
			p := openPID(t, ch.pid)
			p.noMapFiles = true
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			if err := trap(path); errors.Is(err, unix.EPERM) {
				t.Skipf("only root may make devices: %v", err)
			} else if err != nil {
				t.Fatal(err)
			}
			if strings.HasPrefix(name, "sparse") {
				if err := os.Truncate(path, 1<<42); errors.Is(err, unix.EFBIG) {
					t.Skipf("this file system has no files of 4 TB: %v", err)
				} else if err != nil {
					t.Fatal(err)
				}
			}
			image, ok := p.Image(filepath.Base(path))
			if !ok {
				t.Fatal("no image")
			}
			if f, _, err := p.openImage(&p.findImage(image.Name).group); err == nil {
				f.Close()
				t.Error("it was opened for the library")
			}
			if c, ok := p.Code(image.Start+helper, true); !ok || c.Symbol != "hidden_helper" || c.Row == nil {
				t.Errorf("out of memory: %+v, %v", c, ok)
			}
		})
	}
}

// hugeELF is the beginning of a library whose tables reach to the end of the file.
func hugeELF() []byte {
	b := make([]byte, 64)
	copy(b, "\x7fELF\x02\x01\x01")
	b[16], b[18] = 3, 62                // a shared library, x86-64
	b[40+5], b[58] = 0x10, 64           // section headers at 1<<44, of 64 bytes
	b[60], b[61], b[62] = 0xff, 0xff, 1 // 65,535 of them
	return b
}

// TestSwapped: a name leads to another thing at each lookup. goprof reads only what it has checked to be a regular file
// inside the root, or nothing.
func TestSwapped(t *testing.T) { eachOpen(t, checkSwapped) }

func checkSwapped(t *testing.T) {
	root := t.TempDir()
	outside := filepath.Join(t.TempDir(), "outside")
	write := func(path, text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(outside, "outside")
	write(filepath.Join(root, "file"), "inside!")
	link, pipe := filepath.Join(root, "link"), filepath.Join(root, "pipe")
	if err := os.Symlink(outside, link); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	var end atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := 0; !end.Load(); i++ {
			from := []string{filepath.Join(root, "file"), link, pipe}[i%3]
			next := filepath.Join(root, "next")
			os.Remove(next)
			if unix.Linkat(unix.AT_FDCWD, from, unix.AT_FDCWD, next, 0) == nil {
				os.Rename(next, filepath.Join(root, "lib.so"))
				os.Remove(next) // rename removes neither name if both belong to one file
			}
		}
	}()
	opened := 0
	for i := 0; i < 20_000 || opened == 0 && i < 2_000_000; i++ {
		f, size, err := openForeign(root, "/lib.so")
		if err != nil {
			runtime.Gosched() // let the swapping goroutine run
			continue
		}
		opened++
		b := make([]byte, 7)
		if _, err := f.ReadAt(b, 0); err != nil || string(b) != "inside!" || size != 7 {
			t.Errorf("%q of %d bytes, %v", b, size, err)
		}
		f.Close()
	}
	end.Store(true)
	<-done
	if opened == 0 {
		t.Error("it was never opened, so this test proves nothing")
	}
}

// TestPathsInChroot: the kernel reports a file's path from the host's root. In the target's own root, the file has a
// shorter name.
func TestPathsInChroot(t *testing.T) {
	needRoot(t)
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "lib.so"), []byte("inside"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := openPID(t, startChild(t, "chroot "+root, nil).pid)
	for path, want := range map[string]string{
		root + "/lib.so":    "/lib.so",
		"/usr/lib/other.so": "/usr/lib/other.so",
		root + "x/lib.so":   root + "x/lib.so",
	} {
		if got := p.inRoot(path); got != want {
			t.Errorf("%s is %s there, want %s", path, got, want)
		}
	}
	f, _, err := p.OpenPath(root + "/lib.so")
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
}
