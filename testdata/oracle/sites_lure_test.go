//go:build linux

package oracle

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"goprof/testdata/host"
	"goprof/testdata/jvmtest"
)

// lure is a container that tries to make goprof open a file of the host. bait is a folder of the host; the container
// has a folder of the same name. On the host a file "shadow" lies in it, in the container none does.
type lure struct {
	name string
	// lay lays the trap below root, the container's. library is where libjvm.so lies there.
	lay func(t *testing.T, b *lureBuilder)
	// swapped: when the library is mapped, what lies at other takes its place.
	other string
}

// lures are the ways out of a container that are tried.
var lures = []lure{
	{name: "debuglink beside the library", lay: func(t *testing.T,
		b *lureBuilder) {
		b.section(t, ".gnu_debuglink", debugLinkTo("shadow"))
	}},
	{name: "debuglink with a path", lay: func(t *testing.T, b *lureBuilder) {
		b.section(t, ".gnu_debuglink", debugLinkTo(strings.Repeat("../", 12)+b.bait+"/shadow"))
	}},
	{name: "debuglink with an absolute path", lay: func(t *testing.T, b *lureBuilder) {
		b.section(t, ".gnu_debuglink", debugLinkTo(b.bait+"/shadow"))
	}},
	{name: "links to the bait", lay: func(t *testing.T, b *lureBuilder) {
		b.section(t, ".gnu_debuglink", debugLinkTo("a.debug"))
		b.link(t, b.bait+"/shadow", b.bait+"/a.debug")
		b.link(t, strings.Repeat("../", 12)+b.bait[1:], b.bait+"/.debug")
		b.link(t, b.bait+"/shadow", b.bait+"/release")
	}},
	{name: "links through proc", lay: func(t *testing.T, b *lureBuilder) {
		b.section(t, ".gnu_debuglink", debugLinkTo("shadow"))
		b.link(t, "/proc/1/root"+b.bait, b.bait+"/.debug")
		b.link(t, "/proc/1/root/", "/usr/lib/debug"+b.bait)
		b.link(t, "/proc/self/root"+b.bait+"/shadow", b.bait+"/release")
	}},
	{name: "a build id's link", lay: func(t *testing.T, b *lureBuilder) {
		b.build(t, "abcdef0123")
		b.link(t, b.bait+"/shadow", "/usr/lib/debug/.build-id/ab/cdef0123.debug")
		b.link(t, "/proc/1/root"+b.bait+"/shadow", "/usr/lib/debug/.build-id/ab/cdef0124.debug")
	}},
	{name: "a build id through proc", lay: func(t *testing.T, b *lureBuilder) {
		b.build(t, "abcdef0123")
		b.link(t, "/proc/1/root"+b.bait+"/shadow", "/usr/lib/debug/.build-id/ab/cdef0123.debug")
	}},
	{name: "a build id of one byte", lay: func(t *testing.T, b *lureBuilder) { b.build(t, "ab") }},
	{name: "a build id of two bytes", lay: func(t *testing.T, b *lureBuilder) { b.build(t, "2e2e") }},
	{name: "a build id of 65 bytes", lay: func(t *testing.T, b *lureBuilder) { b.build(t, strings.Repeat("2f", 65)) }},
	{name: "debugaltlink", lay: func(t *testing.T, b *lureBuilder) {
		b.section(t, ".gnu_debugaltlink", append([]byte(b.bait+"/shadow\x00"), bytes.Repeat([]byte{7}, 20)...))
	}},
	{name: "replaced by a link to the bait", other: "/other", lay: func(t *testing.T,
		b *lureBuilder) {
		b.link(t, b.bait+"/shadow", "/other")
	}},
	{name: "replaced by a link that climbs", other: "/other", lay: func(t *testing.T, b *lureBuilder) {
		b.link(t, strings.Repeat("../", 20)+b.bait[1:]+"/shadow", "/other")
	}},
	{name: "replaced by a link through proc", other: "/other", lay: func(t *testing.T, b *lureBuilder) {
		b.link(t, "/proc/1/root"+b.bait+"/shadow", "/other")
	}},
	{name: "replaced by a pipe", other: "/other", lay: func(t *testing.T, b *lureBuilder) {
		if err := unix.Mkfifo(b.root+"/other", 0o666); err != nil {
			t.Fatal(err)
		}
	}},
}

// debugLinkTo is the content of .gnu_debuglink: a name, zeros up to a multiple of 4, a checksum.
func debugLinkTo(name string) []byte {
	b := append([]byte(name), 0)
	for len(b)%4 != 0 {
		b = append(b, 0)
	}
	return append(b, 1, 2, 3, 4)
}

// lureBuilder makes one container.
type lureBuilder struct {
	root, bait, library string
}

func newLure(t *testing.T, bait string) *lureBuilder {
	b := &lureBuilder{root: t.TempDir(), bait: bait}
	b.library = b.root + bait + "/libjvm.so"
	for _, dir := range []string{b.root + bait, b.root + "/proc"} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	b.build(t, "0102030405060708")
	return b
}

// build makes the library with that build id, without symbols.
func (b *lureBuilder) build(t *testing.T, id string) {
	t.Helper()
	source := filepath.Join(t.TempDir(), "lib.c")
	if err := os.WriteFile(source, []byte("int lured(void) { return 1; }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	tool(t, "gcc", "-shared", "-nostdlib", "-s", "-Wl,--build-id=0x"+id, "-o", b.library, source)
}

// section adds a section to the library.
func (b *lureBuilder) section(t *testing.T, name string, content []byte) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "section")
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	tool(t, "objcopy", "--add-section", name+"="+file, b.library)
}

// link lays a symbolic link in the container.
func (b *lureBuilder) link(t *testing.T, to, name string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(b.root+name), 0o755), os.Symlink(to, b.root+name)); err != nil {
		t.Fatal(err)
	}
}

func tool(t *testing.T, name string, args ...string) {
	t.Helper()
	jvmtest.NotQuick(t, jvmtest.StartsTool)
	if _, err := exec.LookPath(name); err != nil {
		t.Skipf("%s is not installed (scripts/tools.sh installs it)", name)
	}
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %q: %v\n%s", name, args, err, out)
	}
}

// TestContainerReachesNoHostFile: whatever a container lays out, each command that looks at it opens nothing of the
// host's. The kernel itself tells of each open of the bait (inotify), and a trace of goprof's system calls shows that
// every path is opened as docs/security.md says.
func TestContainerReachesNoHostFile(t *testing.T) {
	t.Parallel()
	host.NeedRoot(t)
	goprof := buildGoprof(t)
	program := filepath.Join(t.TempDir(), "lure")
	tool(t, "gcc", "-static", "-pthread", "-o", program, filepath.Join("..", "..", "testdata", "native", "lure.c"))
	bait := t.TempDir()
	shadow := filepath.Join(bait, "shadow")
	if err := os.WriteFile(shadow, []byte("root:secret:20000:0:99999:7:::\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	watched := watchOpens(t, shadow)

	t.Run("on the host itself", func(t *testing.T) { // where a program may choose: the proof that an open is seen
		b := newLure(t, bait)
		b.section(t, ".gnu_debuglink", debugLinkTo("shadow"))
		b.root = "/"
		tool(t, "cp", b.library, bait+"/libjvm.so")
		pid := host.StartReady(t, exec.Command(program, "/", bait+"/libjvm.so"))
		runIt(t, goprof, "dump", "--pid", strconv.Itoa(pid))
		if watched.opened(t) == 0 {
			t.Error("the bait was not opened on the host, or nobody saw it: this test proves nothing")
		}
	})
	var pids []string
	for _, l := range lures {
		b := newLure(t, bait)
		l.lay(t, b)
		args := []string{b.root, bait + "/libjvm.so"}
		if l.other != "" {
			args = append(args, l.other)
		}
		pid := host.StartReady(t, exec.Command(program, args...))
		pids = append(pids, strconv.Itoa(pid))
		t.Run(l.name, func(t *testing.T) {
			for _, as := range [][]string{nil, weak} {
				for _, command := range []string{"dump", "doctor"} {
					r := traced(t, as, goprof, command, "--pid", strconv.Itoa(pid))
					if n := watched.opened(t); n > 0 {
						t.Errorf("%s opened the bait %d times", command, n)
					}
					if r.code != 4 {
						t.Errorf("%s: exit code %d: %s", command, r.code, r.err)
					}
				}
			}
		})
	}
	for _, command := range [][]string{{"list", "--json"}, {"record", "-o", "-", "-d", "1", "--pid", pids[0]}} {
		r := traced(t, nil, goprof, command...)
		for _, pid := range pids {
			if command[0] == "list" && !strings.Contains(r.out, `"pid": `+pid) {
				t.Errorf("list does not show %s: %s", pid, r.out)
			}
		}
		if n := watched.opened(t); n > 0 {
			t.Errorf("%s opened the bait %d times", command[0], n)
		}
	}
}

// openWatch counts how often a file is opened, by whomever and by whatever name.
type openWatch struct{ fd int }

func watchOpens(t *testing.T, path string) openWatch {
	t.Helper()
	fd, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	if _, err := unix.InotifyAddWatch(fd, path, unix.IN_OPEN|unix.IN_ACCESS); err != nil {
		t.Fatal(err)
	}
	return openWatch{fd}
}

// opened is how often it was since the last call. An O_PATH descriptor opens nothing, and the kernel does not tell of
// it.
func (w openWatch) opened(t *testing.T) (n int) {
	t.Helper()
	var buf [64 << 10]byte
	got, err := unix.Read(w.fd, buf[:])
	if errors.Is(err, unix.EAGAIN) {
		return 0
	}
	if err != nil {
		t.Fatal(err)
	}
	for at := 0; at+unix.SizeofInotifyEvent <= got; n++ {
		e := (*unix.InotifyEvent)(unsafe.Pointer(&buf[at]))
		at += unix.SizeofInotifyEvent + int(e.Len)
	}
	return n
}
