//go:build linux

package process

import (
	"bytes"
	"debug/elf"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"goprof/process/procfs"
)

func needRoot(t testing.TB) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
}

// TestMappedFiles finds symbols in files with names that are hard to parse or lead nowhere. It reads the files through
// map_files, and without the right to do so, by path.
func TestMappedFiles(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Log("not root: map_files cannot be used, all goes by path")
	}
	type state int
	const (
		kept state = iota
		deleted
		replaced // another build is at this path
		pipe     // a pipe is at this path
	)
	for _, c := range []struct {
		name, file string
		verb       string
		state      state
		byPath     bool // the path alone leads to the file
	}{
		{"plain", "libplain.so", "map", kept, true},
		{"spaces", "my lib  x.so", "map", kept, true},
		{"newline", "new\nline.so", "map", kept, true},
		{"looks deleted", "lib.so (deleted)", "map", kept, false},
		{"deleted", "libgone.so", "map", deleted, false},
		{"replaced", "libreplaced.so", "map", replaced, false},
		{"pipe", "libpipe.so", "map", pipe, false},
		{"memfd", "libmemfd.so", "memfd", kept, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			built, helper := buildLibrary(t, dir)
			path := filepath.Join(dir, c.file)
			if err := os.Rename(built, path); err != nil {
				t.Fatal(err)
			}
			ch := startChild(t, c.verb+" "+path, nil)
			p := openPID(t, ch.pid)
			gen := p.Generation()
			ch.goOn()
			start, err := strconv.ParseUint(ch.line(), 0, 64)
			if err != nil {
				t.Fatal(err)
			}
			switch c.state {
			case deleted:
				os.Remove(path)
			case replaced:
				os.Remove(path)
				other := strings.Replace(librarySource, "* 3", "* 5", 1)
				if err := os.WriteFile(filepath.Join(dir, "other.c"), []byte(other), 0o600); err != nil {
					t.Fatal(err)
				}
				run(t, "gcc", "-O0", "-fPIC", "-shared", "-Wl,--build-id=sha1", "-o", path, filepath.Join(dir, "other.c"))
			case pipe:
				os.Remove(path)
				if err := unix.Mkfifo(path, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			// The new image is found without a Refresh, because its pc is unknown.
			var code Code
			eventually(t, "the new image is known", func() bool {
				var ok bool
				code, ok = p.Code(start+helper, true)
				return ok
			})
			if p.Generation() == gen {
				t.Error("the generation has not changed")
			}
			wantName := c.file
			if c.verb == "memfd" {
				wantName = "memfd:jit code"
			}
			if c.name == "looks deleted" {
				wantName = "lib.so"
			}
			if code.Image != wantName || code.Offset != helper || code.Row == nil {
				t.Errorf("Code = %+v, want image %q, offset %#x", code, wantName, helper)
			}
			if os.Geteuid() == 0 && code.Symbol != "hidden_helper" {
				t.Errorf("symbol %q by map_files", code.Symbol)
			}

			q := openPID(t, ch.pid)
			q.noMapFiles = true
			file, _, err := q.openImage(&q.findImage(wantName).group)
			if err == nil {
				file.Close()
			}
			if want := c.byPath; (err == nil) != want {
				t.Errorf("opening it by path: %v, want %v", err, want)
			}
			// The whole file is mapped. So memory has the contents that the path does not lead to.
			if c, ok := q.Code(start+helper, true); !ok || c.Symbol != "hidden_helper" || c.Row == nil {
				t.Errorf("without map_files: %+v, %v", c, ok)
			}
		})
	}
}

// noFiles provides memory but no files.
type noFiles struct{ *Process }

func (noFiles) openImage(*group) (imageFile, int64, error)            { return nil, 0, os.ErrNotExist }
func (noFiles) openDebug(string, debugRoot) (imageFile, int64, error) { return nil, 0, os.ErrNotExist }
func (noFiles) inRoot(path string) string                             { return path }

// TestImageOutOfMemory reads a library without its file. The unwind rules must equal those of the file.
func TestImageOutOfMemory(t *testing.T) {
	ch, _ := startShell(t, "echo ready; read line")
	p := openPID(t, ch.Process.Pid)
	fromFile := p.findImage("libc.so.6")
	if fromFile == nil {
		t.Skip("the shell of this system has no libc.so.6")
	}
	fromMemory := &loaded{group: fromFile.group, files: noFiles{p}}
	rows := 0
	for pc := fromFile.exec[0].Start; pc < fromFile.exec[0].End; pc += 1001 {
		want, got := fromFile.code(pc, pc), fromMemory.code(pc, pc)
		if diff := cmp.Diff(want.Row, got.Row); diff != "" || want.Offset != got.Offset {
			t.Fatalf("at %#x: %s", want.Offset, diff)
		}
		if got.Row != nil {
			rows++
		}
	}
	if rows < 100 {
		t.Errorf("only %d rows", rows)
	}
	for _, name := range []string{"read", "malloc", "environ"} {
		want, err := fromFile.global(name)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := fromMemory.global(name); got != want {
			t.Errorf("%s at %#x, %v; want %#x", name, got, err, want)
		}
	}
	if fromMemory.dynsym == nil || fromMemory.dynsym.len() != fromFile.dynsym.len() {
		t.Errorf("the dynamic symbols are not the file's %d", fromFile.dynsym.len())
	}
}

// TestImageOfAnEndedProcess: if a process has ended, goprof does not report that its files were replaced or deleted.
func TestImageOfAnEndedProcess(t *testing.T) {
	ch, in := startShell(t, "echo ready; read line")
	p := openPID(t, ch.Process.Pid)
	lib := p.findImage("libc.so.6")
	if lib == nil {
		t.Skip("the shell of this system has no libc.so.6")
	}
	in.Close()
	ch.Wait()
	if f, _, err := p.openImage(&lib.group); !errors.Is(err, ErrGone) {
		t.Errorf("%v, %v", f, err)
	}
	lib.symbol(0x1000)
	if un := p.Unopened(); len(un) != 0 || !errors.Is(lib.noFile, ErrGone) {
		t.Errorf("%v, %v", un, lib.noFile)
	}
}

// eachOpen runs a test with openat2, and as on a kernel without it.
func eachOpen(t *testing.T, test func(t *testing.T)) {
	t.Run("openat2", test)
	t.Run("walk", func(t *testing.T) {
		defer func(was func(int, string, *unix.OpenHow) (int, error)) { openat2 = was }(openat2)
		openat2 = func(int, string, *unix.OpenHow) (int, error) { return -1, unix.ENOSYS }
		test(t)
	})
}

func TestOpenInRootStaysInside(t *testing.T) { eachOpen(t, checkOpenInRoot) }

func checkOpenInRoot(t *testing.T) {
	root := t.TempDir()
	write := func(name string) {
		if err := os.WriteFile(filepath.Join(root, name), []byte("inside"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("file")
	outside := filepath.Join(t.TempDir(), "outside")
	if err := os.WriteFile(outside, []byte("outside"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(root, "folder"), 0o700); err != nil {
		t.Fatal(err)
	}
	for link, to := range map[string]string{
		"absolute": outside, "climbs": "../../../../../../../../" + outside, "inner": "/file", "proc": "/proc/self/exe",
		"round": "round", "folder/up": "../file", "folder/down": "/folder/../folder/up", "host": "/proc/self/root",
	} {
		if err := os.Symlink(to, filepath.Join(root, link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.Mkfifo(filepath.Join(root, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{
		"/file": true, "/inner": true, "/../file": true, "/folder/down": true, "/folder/../folder/up": true,
		"/round": false, "/folder": false, "/file/": false, "/file/x": false, "/host/etc/passwd": false,
		"/absolute": false, "/climbs": false, "/proc": false, "/pipe": false, "/": false, "/none": false, "": false,
	} {
		f, _, err := openForeign(root, path)
		if (err == nil) != want {
			t.Errorf("%q: %v", path, err)
		}
		if err == nil {
			b := make([]byte, 6)
			if f.Read(b); string(b) != "inside" {
				t.Errorf("%q leads out", path)
			}
			f.Close()
		}
	}
}

// TestKernelsFilesAreNotOpened: a hostile program may name a file of the kernel as its debug file.
func TestKernelsFilesAreNotOpened(t *testing.T) { eachOpen(t, checkKernelsFiles) }

func checkKernelsFiles(t *testing.T) {
	for _, path := range []string{"/proc/version", "/proc/sys/kernel/ostype", "/sys/kernel/uevent_seqnum"} {
		if st, err := os.Stat(path); err != nil || !st.Mode().IsRegular() {
			t.Errorf("this kernel has no %s: %v", path, err)
		}
		if f, _, err := openForeign("/", path); !errors.Is(err, errNotRegular) {
			t.Errorf("%s: %v", path, err)
			f.Close()
		}
	}
}

func TestZombieLeader(t *testing.T) {
	ch := startChild(t, "leaderless", nil)
	early := openPID(t, ch.pid) // the leader may still be running
	eventually(t, "the leader is a zombie", func() bool {
		st, _, err := procfs.ReadStat(ch.pid, ch.pid)
		return err == nil && st.State == 'Z'
	})
	late := openPID(t, ch.pid)
	for name, p := range map[string]*Process{"opened before": early, "opened after": late} {
		if err := p.Alive(); err != nil {
			t.Errorf("%s: Alive: %v", name, err)
		}
		var b [4]byte
		if err := p.Read(p.Mappings()[0].Start, b[:]); err != nil || string(b[:]) != "\x7fELF" {
			t.Errorf("%s: Read: %q, %v", name, b, err)
		}
		if err := p.Refresh(); err != nil {
			t.Errorf("%s: Refresh: %v", name, err)
		}
		threads, err := p.Threads()
		if err != nil || len(threads) < 2 || threads[0].State != 'Z' {
			t.Errorf("%s: Threads: %v, %v", name, threads, err)
		}
		if c, ok := p.Code(p.exec[0].start+64, true); !ok || c.Image == "" {
			t.Errorf("%s: Code: %v, %v", name, c, ok)
		}
	}
}

func TestOpenErrors(t *testing.T) {
	check := func(name string, pid int, want error) {
		p, err := Open(pid)
		if err == nil {
			p.Close()
		}
		var oe *OpenError
		if !errors.Is(err, want) || !errors.As(err, &oe) || oe.PID != pid {
			t.Errorf("%s: %v, want %v", name, err, want)
		}
	}
	check("nobody", 1<<22+1, ErrNoProcess)
	check("negative", -1, ErrNoProcess)
	tids, err := listThreads(os.Getpid())
	if err != nil || len(tids) < 2 {
		t.Fatalf("threads: %v, %v", tids, err)
	}
	check("a thread", tids[len(tids)-1], ErrNoProcess)
	if b, _ := os.ReadFile("/proc/2/comm"); string(b) == "kthreadd\n" && os.Geteuid() == 0 {
		check("a kernel thread", 2, ErrNoMemory)
	}
	ch := startChild(t, "sleep", nil)
	ch.goOn()
	eventually(t, "the child has exited", func() bool {
		st, _, err := procfs.ReadStat(ch.pid, ch.pid)
		tids, _ := listThreads(ch.pid) // the leader may be a zombie before the other threads have ended
		return err == nil && st.State == 'Z' && len(tids) == 1
	})
	check("a zombie", ch.pid, ErrNoProcess)
}

func TestOpenByAnotherUser(t *testing.T) {
	needRoot(t)
	ch := startChild(t, "open "+strconv.Itoa(os.Getpid()), nil)
	line := ch.line()
	if !strings.HasPrefix(line, "true: ") || !strings.Contains(line, ErrNotPermitted.Error()) {
		t.Errorf("the error is %q", line)
	}
}

func TestThreads(t *testing.T) {
	p := openSelf(t)
	before, err := listThreads(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	threads, err := p.Threads()
	if err != nil {
		t.Fatal(err)
	}
	after, err := listThreads(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	seen := map[int]bool{}
	for _, th := range threads {
		seen[th.TID] = true
		if !slices.Contains(before, th.TID) && !slices.Contains(after, th.TID) {
			t.Errorf("%+v: the kernel lists no such thread, %v", th, after)
		}
	}
	for _, tid := range before { // Go may start threads at any time
		if slices.Contains(after, tid) && !seen[tid] {
			t.Errorf("thread %d is missing: %+v", tid, threads)
		}
	}
	for _, th := range threads {
		if th.TID != th.NSTID || th.Comm == "" || !strings.ContainsRune("RSDTtI", rune(th.State)) {
			t.Errorf("%+v", th)
		}
		if status, err := procfs.ReadStatus(p.PID(), th.TID); err == nil && status.Tracer != 0 {
			t.Errorf("thread %d is traced by %d", th.TID, status.Tracer)
		}
	}
	if _, err := p.Thread(1 << 23); !errors.Is(err, ErrGone) {
		t.Errorf("no such thread: %v", err)
	}
}

func TestThreadsInAPidNamespace(t *testing.T) {
	needRoot(t)
	ch := startChild(t, "sleep", &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWPID})
	p := openPID(t, ch.pid)
	threads, err := p.Threads()
	if err != nil || len(threads) == 0 || threads[0].TID != ch.pid || threads[0].NSTID != 1 {
		t.Errorf("%+v, %v; want %d to be 1 inside", threads, err, ch.pid)
	}
}

// TestVDSOAgainstReadelf reads the unwind rules of the vdso in its own memory. It compares them with readelf's output
// for a copy.
func TestVDSOAgainstReadelf(t *testing.T) {
	p := openSelf(t)
	run(t, "readelf", "--version")
	image, ok := p.Image(vdsoName)
	if !ok {
		t.Skip("this kernel maps no vdso")
	}
	b := make([]byte, image.End-image.Start)
	if err := p.Read(image.Start, b); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "vdso.so")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	out := run(t, "readelf", "-wNF", path)
	if f, err := elf.NewFile(bytes.NewReader(b)); err == nil && f.Section(".eh_frame") == nil {
		t.Skip("this kernel's vdso has no unwind rules") // arm64: see unwind/assembly.go
	}
	rows := 0
	readelfRows(bytes.NewBufferString(out), func(loc uint64, columns, values []string) {
		rows++
		c, ok := p.Code(image.Bias+loc, true)
		if !ok || c.Row == nil {
			t.Errorf("%#x: %+v, %v", loc, c, ok)
			return
		}
		if err := sameRow(c.Row, readelfNames[p.CPU().Machine], columns, values); err != nil {
			t.Errorf("%#x: %v", loc, err)
		}
	})
	if rows == 0 {
		t.Errorf("no rows: %s", out)
	}
}
