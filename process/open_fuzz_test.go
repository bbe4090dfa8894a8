//go:build linux

package process

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// FuzzDebugPaths makes names of debug files from arbitrary images, links and build ids. The files of a link must be in
// the folders that gdb documents. The name for a build id may only contain hexadecimal digits of that id.
func FuzzDebugPaths(f *testing.F) {
	f.Add("/usr/lib/jvm/lib/server/libjvm.so", []byte("libjvm.debug\x00\x00\x00\x00abcd"), []byte{1, 2, 3})
	f.Add("/etc/libjvm.so", []byte("shadow\x00\x00\x00\x00\x00\x00"), []byte{1})
	f.Add("/a/../../b", []byte("../../etc/shadow\x00\x00\x00\x00\x00\x00\x00\x00"), []byte("//..//.."))
	f.Add("[vdso]", []byte("..\x00\x00abcd"), []byte{})
	f.Fuzz(func(t *testing.T, image string, section, id []byte) {
		if name := buildIDPath(id); name != "" {
			digits := strings.NewReplacer("/usr/lib/debug/.build-id/", "", "/", "", ".debug", "").Replace(name)
			if got, err := hex.DecodeString(digits); err != nil || !bytes.Equal(got, id) ||
				path.Clean(name) != name || strings.Count(name, "/") != 6 {
				t.Fatalf("%q of %x", name, id)
			}
		}
		link, sum, ok := linkOf(section)
		if !ok {
			return
		}
		if link == "" || link == "." || link == ".." || strings.ContainsAny(link, "/\x00") {
			t.Fatalf("%q is believed", link)
		}
		if at := (len(link) + 4) &^ 3; binary.LittleEndian.Uint32(section[at:]) != sum {
			t.Fatalf("%q: checksum %#x", section, sum)
		}
		dir := path.Dir(image)
		for _, name := range debugLinkPaths(image, link) {
			in := path.Dir(name)
			if name == image || path.Base(name) != link || in != dir && in != path.Join(dir, ".debug") &&
				in != path.Join("/usr/lib/debug", dir) {
				t.Fatalf("%q for %q of %q", name, link, image)
			}
		}
	})
}

// linkOf reads a .gnu_debuglink with these bytes.
func linkOf(section []byte) (string, uint32, bool) {
	f := &elfFile{r: bytes.NewReader(section), size: uint64(len(section)), sections: make([]elfSection, 1)}
	f.sections[0].name, f.sections[0].Size = ".gnu_debuglink", uint64(len(section))
	return f.debugLink()
}

// FuzzOpenImage opens images by arbitrary paths in a hostile root. Each name there may be a link to an arbitrary place,
// or an arbitrary file. goprof must open nothing outside of the root, and accept only the mapped file as the image.
func FuzzOpenImage(f *testing.F) {
	self, err := os.Executable()
	if err != nil {
		f.Fatal(err)
	}
	outside := f.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "secret"), []byte("secret"), 0o600); err != nil {
		f.Fatal(err)
	}
	p, err := Open(os.Getpid())
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { p.Close() })
	p.noMapFiles = true
	own := p.findImage(filepath.Base(self))
	if own == nil {
		f.Fatal("no image of ourselves")
	}
	for _, path := range []string{"/lib.so", "/link", "/dir/link", "/link/secret", "/../lib.so", "//dir/../link"} {
		for _, to := range []string{"/lib.so", outside + "/secret", "../../../../../../../.." + outside + "/secret",
			"/proc/self/root" + outside, "link", "dir"} {
			f.Add(path, to, []byte("inside"))
		}
	}
	f.Fuzz(func(t *testing.T, path, to string, content []byte) {
		root := t.TempDir()
		os.WriteFile(filepath.Join(root, "lib.so"), content, 0o600)
		os.Mkdir(filepath.Join(root, "dir"), 0o700)
		os.Symlink(to, filepath.Join(root, "link"))
		os.Symlink(to, filepath.Join(root, "dir", "link"))
		var want unix.Stat_t
		if err := unix.Stat(filepath.Join(root, "lib.so"), &want); err != nil {
			t.Fatal(err)
		}
		opened := 0
		eachOpen(t, func(t *testing.T) {
			if file, size, err := openForeign(root, path); err == nil {
				var got unix.Stat_t
				b, _ := io.ReadAll(file)
				if err := unix.Fstat(int(file.Fd()), &got); err != nil || got.Ino != want.Ino || got.Dev != want.Dev ||
					!bytes.Equal(b, content) || size != int64(len(content)) {
					t.Fatalf("%q with a link to %q leads to %q", path, to, b)
				}
				file.Close()
				opened++
			}
		})
		if opened == 1 {
			t.Fatalf("%q with a link to %q: openat2 and the walk come to different ends", path, to)
		}
		// The same with an image of this process, which has the host's root.
		g := own.group
		g.Path = root + path
		if file, _, err := p.openImage(&g); err == nil {
			var got, mapped unix.Stat_t
			unix.Fstat(int(file.(*os.File).Fd()), &got)
			unix.Stat(self, &mapped)
			if got.Ino != mapped.Ino || got.Dev != mapped.Dev {
				t.Fatalf("%q was taken for the file that is mapped", g.Path)
			}
			file.Close()
		}
	})
}
