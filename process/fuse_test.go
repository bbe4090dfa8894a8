//go:build linux

package process

import (
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"goprof/testdata/jvmtest"
)

// fuseFile is a file system with one file. A test answers its requests itself (include/uapi/linux/fuse.h), until it
// stops answering.
type fuseFile struct {
	path   string
	bytes  []byte
	silent atomic.Bool
	asked  atomic.Int64 // requests that got no answer
	fd     int
}

// Requests.
const (
	fuseLookup, fuseForget, fuseGetattr, fuseOpen, fuseRead, fuseStatfs = 1, 2, 3, 14, 15, 17
	fuseRelease, fuseFlush, fuseInit, fuseInterrupt, fuseBatchForget    = 18, 25, 26, 36, 42
)

// serveFile mounts a file system with a file of this name.
func serveFile(t testing.TB, name string, bytes []byte) *fuseFile {
	t.Helper()
	fd, err := unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Skipf("/dev/fuse cannot be opened: %v", err)
	}
	dir := t.TempDir()
	options := "fd=" + strconv.Itoa(fd) + ",rootmode=40000,user_id=0,group_id=0,allow_other"
	if err := unix.Mount("goprof-test", dir, "fuse", unix.MS_NOSUID|unix.MS_NODEV, options); err != nil {
		unix.Close(fd)
		t.Skipf("mount needs root: %v", err)
	}
	f := &fuseFile{path: filepath.Join(dir, name), bytes: bytes, fd: fd}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		f.serve()
	}()
	t.Cleanup(func() {
		unix.Unmount(dir, unix.MNT_FORCE|unix.MNT_DETACH) // all waiting calls get an error
		<-ended
		unix.Close(fd)
	})
	return f
}

func (f *fuseFile) serve() {
	request := make([]byte, 1<<18)
	for {
		n, err := unix.Read(f.fd, request)
		if err == unix.EINTR || err == unix.ENOENT || err == unix.EAGAIN {
			continue
		}
		if err != nil || n < 40 {
			return // unmounted
		}
		if f.silent.Load() {
			switch binary.LittleEndian.Uint32(request[4:]) {
			case fuseForget, fuseBatchForget, fuseInterrupt: // the kernel sends these by itself
			default:
				f.asked.Add(1)
			}
			continue
		}
		f.answer(request[:n])
	}
}

func (f *fuseFile) answer(request []byte) {
	le := binary.LittleEndian
	var out []byte
	failed := int32(0)
	switch le.Uint32(request[4:]) {
	case fuseForget, fuseBatchForget, fuseInterrupt:
		return
	case fuseInit:
		out = make([]byte, 64)
		le.PutUint32(out, 7)
		le.PutUint32(out[4:], 31)
		le.PutUint32(out[20:], 4096) // max_write
	case fuseLookup:
		out = append(make([]byte, 40), f.attr(false)...)
		le.PutUint64(out, 2) // the file's node
	case fuseGetattr:
		out = append(make([]byte, 16), f.attr(le.Uint64(request[16:]) == 1)...)
	case fuseOpen:
		out = make([]byte, 16)
	case fuseRead:
		from := min(le.Uint64(request[48:]), uint64(len(f.bytes)))
		to := min(from+uint64(le.Uint32(request[56:])), uint64(len(f.bytes)))
		out = f.bytes[from:to]
	case fuseStatfs:
		out = make([]byte, 80)
	case fuseRelease, fuseFlush:
	default:
		failed = -int32(unix.ENOSYS)
	}
	reply := make([]byte, 16, 16+len(out))
	le.PutUint32(reply, uint32(16+len(out)))
	le.PutUint32(reply[4:], uint32(failed))
	copy(reply[8:16], request[8:16])
	unix.Write(f.fd, append(reply, out...))
}

// attr returns a struct fuse_attr, of the root or of the file. The kernel may not cache it, so it asks each time.
func (f *fuseFile) attr(root bool) []byte {
	le := binary.LittleEndian
	b := make([]byte, 88)
	ino, mode := uint64(2), uint32(unix.S_IFREG|0o755)
	if root {
		ino, mode = 1, unix.S_IFDIR|0o755
	}
	le.PutUint64(b, ino)
	le.PutUint64(b[8:], uint64(len(f.bytes)))
	le.PutUint32(b[60:], mode)
	le.PutUint32(b[64:], 1)
	return b
}

// cLoads loads a library. It prints the addresses of the library's function "slow" and of its own "main".
const cLoads = `
#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>
int main(int argc, char **argv) {
	void *lib = dlopen(argv[1], RTLD_NOW);
	if (!lib) { puts(dlerror()); return 1; }
	printf("%lu\n%lu\n", (unsigned long)dlsym(lib, "slow"), (unsigned long)main);
	fflush(stdout);
	for (;;) pause();
}`

func compileC(t testing.TB, source string, options ...string) string {
	t.Helper()
	return compileWith(t, "gcc", source, options...)
}

func compileWith(t testing.TB, compiler, source string, options ...string) string {
	t.Helper()
	jvmtest.NotQuick(t, jvmtest.Builds)
	gcc, err := exec.LookPath(compiler)
	if err != nil {
		t.Skipf("%s is not installed (Debian: gcc libc6-dev musl-tools)", compiler)
	}
	dir := t.TempDir()
	src, out := filepath.Join(dir, "p.c"), filepath.Join(dir, "p")
	if err := os.WriteFile(src, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	if said, err := exec.Command(gcc, append(options, "-o", out, src)...).CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, said)
	}
	return out
}

// TestSilentFile: an image is on a file system that has stopped answering.
func TestSilentFile(t *testing.T) {
	library := compileC(t, `int slow(int a) { return a + 1; }`, "-shared", "-fPIC")
	bytes, err := os.ReadFile(library)
	if err != nil {
		t.Fatal(err)
	}
	program := compileC(t, cLoads, "-ldl")
	file := serveFile(t, "libslow.so", bytes)
	cmd := exec.Command(program, file.path)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	var said [2]uint64
	if _, err := fmt.Fscan(out, &said[0], &said[1]); err != nil {
		t.Fatal(err)
	}
	file.silent.Store(true)
	p, err := Open(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	c, ok := p.Code(said[0]+1, true)
	if !ok || c.Image != "libslow.so" || c.Symbol != "" {
		t.Errorf("in the file that does not answer: %+v, %v", c, ok)
	}
	if file.asked.Load() == 0 {
		t.Error("nobody asked for the file: this proves nothing")
	}
	asked := file.asked.Load()
	if c, ok := p.Code(said[1]+1, true); !ok || c.Symbol != "main" {
		t.Errorf("in another file: %+v, %v", c, ok)
	}
	if _, err := p.Global("libslow.so", "slow"); err == nil {
		t.Error("its symbols are known")
	}
	if now := file.asked.Load(); now != asked {
		t.Errorf("it was asked for %d times more", now-asked)
	}
	unopened := p.Unopened()
	if len(unopened) != 1 || unopened[0].Err != ErrSilent {
		t.Errorf("not opened: %v", unopened)
	}
}
