//go:build linux

package diagnose

import (
	"debug/elf"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"goprof/process"
	"goprof/process/procfs"
	"goprof/sampler"
	"goprof/vmstructs"
)

// fakeProc is a proc file system made of files, for causes that this machine lacks.
type fakeProc struct {
	t   *testing.T
	dir string
}

func newFakeProc(t *testing.T) *fakeProc {
	f := &fakeProc{t, t.TempDir()}
	f.process("self", 500, nil)
	f.link("self/ns/user", "user:[4026531837]")
	f.link("self/ns/pid", "pid:[4026531836]")
	return f
}

func (f *fakeProc) write(name, text string) {
	f.t.Helper()
	path := filepath.Join(f.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		f.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fakeProc) link(name, to string) {
	f.t.Helper()
	path := filepath.Join(f.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		f.t.Fatal(err)
	}
	os.Remove(path)
	if err := os.Symlink(to, path); err != nil {
		f.t.Fatal(err)
	}
}

// process writes a status as the kernel does, of user 1000 without capabilities. changes replace lines of it.
func (f *fakeProc) process(dir string, pid int, changes map[string]string) {
	f.t.Helper()
	lines := [][2]string{
		{"Name", "java"}, {"State", "S (sleeping)"}, {"Tgid", fmt.Sprint(pid)}, {"Pid", fmt.Sprint(pid)}, {"PPid", "1"},
		{"TracerPid", "0"}, {"Uid", "1000 1000 1000 1000"}, {"Gid", "1000 1000 1000 1000"}, {"NSpid", fmt.Sprint(pid)},
		{"VmSize", "1000 kB"}, {"CapPrm", "0"}, {"CapEff", "0"}, {"CapBnd", "1ffffffffff"}, {"Seccomp", "0"},
	}
	var b strings.Builder
	for _, l := range lines {
		value, ok := changes[l[0]]
		if !ok {
			value = l[1]
		}
		if value != "-" {
			fmt.Fprintf(&b, "%s:\t%s\n", l[0], strings.ReplaceAll(value, " ", "\t"))
		}
	}
	f.write(dir+"/status", b.String())
}

// threads gives process 77 a stat, and a second thread.
func (f *fakeProc) threads(comm, second string) {
	f.write("77/stat", "77 ("+comm+") S 1 77 77 0 -1 4194560 100 0 0 0 5 5 0 0 20 0 2 0 100 10000000 500 "+
		""+strings.Repeat("0 ", 28)+"\n")
	f.write("77/task/77/comm", comm+"\n")
	f.write("77/task/78/comm", second+"\n")
}

// as changes the status of goprof itself.
func (f *fakeProc) as(changes map[string]string) { f.process("self", 500, changes) }

// it changes process 77.
func (f *fakeProc) it(changes map[string]string) { f.process("77", 77, changes) }

func (f *fakeProc) yama(scope string) { f.write("sys/kernel/yama/ptrace_scope", scope+"\n") }

const everything = "1ffffffffff"

func root() map[string]string {
	return map[string]string{"Uid": "0 0 0 0", "Gid": "0 0 0 0", "CapPrm": everything, "CapEff": everything}
}

func with(m map[string]string, key, value string) map[string]string {
	m[key] = value
	return m
}

func TestExplainFaked(t *testing.T) {
	denied := &process.OpenError{PID: 77, Err: process.ErrNotPermitted}
	missing := &process.OpenError{PID: 77, Err: process.ErrNoProcess}
	weak := map[string]string{"Uid": "0 0 0 0", "Gid": "0 0 0 0", "CapBnd": "a80425fb", "CapPrm": "a80425fb",
		"CapEff": "a80425fb"}
	for _, c := range []struct {
		name  string
		setup func(f *fakeProc)
		err   error

		class  Class
		cause  string
		why    string // part of the cause
		remedy string // part of the remedy
	}{
		{"other user", func(f *fakeProc) { f.it(map[string]string{"Uid": "1001 1001 1001 1001"}) }, denied,
			Forbidden, "other-user", "belongs to user 1001", "sudo goprof record --pid 77"},
		{"its saved user is another", func(f *fakeProc) { f.it(map[string]string{"Uid": "1000 1000 0 1000"}) }, denied,
			Forbidden, "other-user", "", "sudo "},
		{"other group", func(f *fakeProc) { f.it(map[string]string{"Gid": "1000 7 1000 1000"}) }, denied,
			Forbidden, "other-group", "group 7", "sudo "},
		{"denied in the middle of a recording", func(f *fakeProc) { f.it(root()) }, &sampler.NotPermittedError{PID: 77},
			Forbidden, "other-user", "belongs to user 0 (root)", "sudo "},
		{"root in a container without the capability", func(f *fakeProc) { f.as(weak); f.it(nil) }, denied,
			Forbidden, "no-capability", "lacks CAP_SYS_PTRACE, as in a container", "--cap-add SYS_PTRACE"},
		{"root that dropped the capability", func(f *fakeProc) { f.as(with(root(), "CapEff", "0")); f.it(nil) }, denied,
			Forbidden, "no-capability", "lacks CAP_SYS_PTRACE", "sudo "},
		{"more capabilities", func(f *fakeProc) { f.it(map[string]string{"CapPrm": "400"}) }, denied,
			Forbidden, "more-capabilities", "0x400", "sudo "},
		{"not dumpable", func(f *fakeProc) { f.it(map[string]string{"Name": "undumpable"}) }, denied,
			Forbidden, "not-dumpable", "PR_SET_DUMPABLE", "sudo "},
		{"yama 1", func(f *fakeProc) { f.it(nil); f.yama("1") }, denied,
			Forbidden, "yama", "ptrace_scope is 1: only a parent", "sudo sysctl kernel.yama.ptrace_scope=0"},
		{"yama 2", func(f *fakeProc) { f.it(nil); f.yama("2") }, denied,
			Forbidden, "yama", "ptrace_scope is 2: only programs with CAP_SYS_PTRACE", "sudo sysctl"},
		{"yama 2 and root without the capability", func(f *fakeProc) { f.as(weak); f.it(weak); f.yama("2") }, denied,
			Forbidden, "no-capability", "ptrace_scope is 2", "--cap-add SYS_PTRACE"},
		{"yama 3", func(f *fakeProc) { f.it(nil); f.yama("3") }, denied,
			Forbidden, "yama", "ptrace_scope is 3: no process", "reboot"},
		{"CAP_SYS_PTRACE alone", func(f *fakeProc) { f.as(map[string]string{"CapEff": "80000"}); f.it(root()) }, denied,
			Forbidden, "owner-only", "CAP_DAC_READ_SEARCH", "setcap cap_sys_ptrace,cap_dac_read_search+ep"},
		{"yama 3 and root", func(f *fakeProc) { f.as(root()); f.it(nil); f.yama("3") }, denied,
			Forbidden, "yama", "ptrace_scope is 3: no process", "reboot"},
		{"yama 1 does not concern root", func(f *fakeProc) { f.as(root()); f.it(nil); f.yama("1") }, denied,
			Forbidden, "security-module", "SELinux", "dmesg"},
		{"seccomp as root", func(f *fakeProc) { f.as(with(root(), "Seccomp", "2")); f.it(nil) }, denied,
			Forbidden, "seccomp", "on goprof itself", "seccomp=unconfined"},
		{"seccomp as the same user", func(f *fakeProc) { f.as(map[string]string{"Seccomp": "2"}); f.it(nil) }, denied,
			Forbidden, "seccomp", "on goprof itself", "seccomp=unconfined"},
		{"seccomp, but another user's", func(f *fakeProc) { f.as(map[string]string{"Seccomp": "2"}); f.it(root()) }, denied,
			Forbidden, "other-user", "", "sudo "},
		{"security module", func(f *fakeProc) { f.it(nil) }, denied,
			Forbidden, "security-module", "SELinux", "dmesg"},
		{"security module, and the names of the threads are a JVM's", func(f *fakeProc) {
			f.it(nil)
			f.threads("server", "VM Thread")
		}, denied, Forbidden, "security-module", "SELinux", "dmesg"},
		{"security module, and a launcher's name", func(f *fakeProc) { f.it(nil); f.threads("java", "java") }, denied,
			Forbidden, "security-module", "SELinux", "dmesg"},
		{"pid 1 of a sandbox, which is no JVM", func(f *fakeProc) {
			f.it(root())
			f.as(root())
			f.threads("init",
				"worker")
		}, denied,
			NotJVM, "not-java", "it seems to run no JVM (init): none of its threads", "goprof list"},
		{"host's process seen from a user namespace", func(f *fakeProc) {
			f.as(root())
			f.link("self/ns/user", "user:[7]")
			f.it(nil)
			f.link("77/ns/user", "user:[4026531837]")
		}, denied, Forbidden, "user-namespace", "count for nothing", "root of the host"},
		{"rootless container of ours", func(f *fakeProc) { f.it(nil); f.link("77/ns/user", "user:[7]") }, denied,
			Forbidden, "user-namespace", "another user namespace", "sudo "},
		{"traced", func(f *fakeProc) {
			f.it(map[string]string{"TracerPid": "88"})
			f.process("88", 88, map[string]string{"Name": "gdb"})
		}, ErrTraced, Forbidden, "traced", "process 88 (gdb) traces it already", "kill 88"},
		{"one thread is traced", func(f *fakeProc) {
			f.it(nil)
			f.process("77/task/77", 77, nil)
			f.process("77/task/78", 78, map[string]string{"TracerPid": "88"})
		}, ErrTraced, Forbidden, "traced", "process 88 traces it", "kill 88"},
		{"traced no more", func(f *fakeProc) { f.it(nil) }, ErrTraced,
			Forbidden, "traced", "traced it", "goprof record --pid 77"},
		{"denied and gone", func(f *fakeProc) {}, denied,
			Gone, "gone", "it ended", "goprof list"},

		{"no such pid", func(f *fakeProc) {}, missing,
			NoProcess, "no-process", "no such process", "goprof list"},
		{"no such pid in a container", func(f *fakeProc) { f.link("self/ns/pid", "pid:[7]") }, missing,
			NoProcess, "no-process", "own pid namespace (where goprof is 500)", "--pid container:NAME"},
		{"pid of a container", func(f *fakeProc) {
			f.process("4711", 4711, map[string]string{"NSpid": "4711 200 77"})
			f.process("4712", 4712, nil)
		}, missing, NoProcess, "inner-pid", "here that process is 4711 (java)", "goprof record --pid 4711"},
		{"pid of two containers", func(f *fakeProc) {
			f.process("4711", 4711, map[string]string{"NSpid": "4711 77"})
			f.process("4712", 4712, map[string]string{"NSpid": "4712 77"})
		}, missing, NoProcess, "inner-pid", "several containers", "goprof list"},
		{"a thread's number", func(f *fakeProc) { f.it(map[string]string{"Tgid": "70"}) }, missing,
			NoProcess, "thread-id", "a thread of process 70", "goprof record --pid 70"},
		{"zombie", func(f *fakeProc) { f.it(map[string]string{"State": "Z (zombie)", "VmSize": "-"}) }, missing,
			Gone, "zombie", "waits for its parent (1)", "goprof list"},
		{"changed while it was opened", func(f *fakeProc) { f.it(nil) }, missing,
			Gone, "exec", "changed while it was opened", "goprof record --pid 77"},
		{"kernel thread", func(f *fakeProc) { f.it(map[string]string{"PPid": "2", "VmSize": "-", "Name": "kworker/0:1"}) },
			&process.OpenError{Err: process.ErrNoMemory},
			NotJVM, "kernel-thread", "kworker/0:1", "goprof list"},
		{"just ending", func(f *fakeProc) { f.it(map[string]string{"VmSize": "-"}) },
			&process.OpenError{Err: process.ErrNoMemory},
			Gone, "gone", "just ending", ""},
		{"gone", func(f *fakeProc) {}, fmt.Errorf("reading: %w", process.ErrGone),
			Gone, "gone", "it ended", "goprof list"},
		{"exec midway", func(f *fakeProc) { f.it(map[string]string{"Name": "sleep"}) }, process.ErrGone,
			Gone, "exec", "became another program (sleep)", "goprof record --pid 77"},

		{"not Java", func(f *fakeProc) {
			f.it(map[string]string{"Name": "nginx"})
			f.write("77/maps", mapsOf("/usr/sbin/nginx"))
		}, vmstructs.ErrNotHotSpot,
			NotJVM, "not-java", "(nginx)", "goprof list"},
		{"pid 1 was meant as in the container", func(f *fakeProc) {
			f.it(map[string]string{"Name": "systemd"})
			f.process("4711", 4711, map[string]string{"NSpid": "4711 77"})
			f.write("4711/maps", mapsOf("/usr/bin/java", "/usr/lib/jvm/lib/server/libjvm.so"))
			f.process("4712", 4712, map[string]string{"NSpid": "4712 77", "Name": "nginx"})
			f.write("4712/maps", mapsOf("/usr/sbin/nginx"))
		}, vmstructs.ErrNotHotSpot, NotJVM, "inner-pid", "the JVM that is 4711 (java) here", "goprof record --pid 4711"},
		{"OpenJ9", func(f *fakeProc) {
			f.it(nil)
			f.write("77/maps", mapsOf("/opt/java", "/opt/lib/default/libj9vm29.so", "/opt/lib/default/libjvm.so"))
		}, vmstructs.ErrNotHotSpot, NotJVM, "openj9", "Eclipse OpenJ9", "jcmd 77 Thread.print"},
		{"Zero", func(f *fakeProc) { f.it(nil) }, vmstructs.ErrZero, NotJVM, "zero", "a Zero VM", "jcmd 77 Thread.print"},
		{"native image", func(f *fakeProc) {
			f.it(nil)
			f.write("77/maps", mapsOf("/srv/app"))
			f.link("77/exe", nativeImageFile(f.t))
		}, vmstructs.ErrNotHotSpot, NotJVM, "native-image", "GraalVM native image", "perf record"},
		{"libjvm without tables", func(f *fakeProc) {
			f.it(nil)
			f.write("77/maps", mapsOf("/usr/lib/jvm/lib/server/libjvm.so (deleted)"))
		}, fmt.Errorf("%w: no symbol", vmstructs.ErrNotHotSpot), NotJVM, "no-symbols", "gHotSpotVMStructs",
			"goprof doctor --pid 77"},
		{"still starting", func(f *fakeProc) { f.it(nil) }, fmt.Errorf("%w: no libjvm.so yet", vmstructs.ErrStarting),
			NotJVM, "starting", "still starting", "sleep 1; goprof record --pid 77"},
		{"a field is missing", func(f *fakeProc) { f.it(nil) },
			&vmstructs.Unsupported{Missing: []string{"CodeCache::_heaps"}},
			NotJVM, "unsupported", "CodeCache::_heaps", "goprof doctor --pid 77"},
		{"tables of rubbish", func(f *fakeProc) { f.it(nil) }, fmt.Errorf("%w: stride", vmstructs.ErrBadTables),
			NotJVM, "bad-tables", "does not hold together", "goprof doctor --pid 77"},
		{"a 32-bit program", func(f *fakeProc) { f.it(nil) }, process.ErrUnknownCPU,
			NotJVM, "other-cpu", "64-bit", ""},
		{"a JVM of 32 bits", func(f *fakeProc) {
			f.it(nil)
			f.write("77/maps", mapsOf("/usr/bin/java", "/usr/lib/jvm/java-17-openjdk-i386/lib/server/libjvm.so"))
		}, process.ErrUnknownCPU, NotJVM, "other-cpu", "its JVM is not a 64-bit one", "jcmd 77 Thread.print"},
		{"too many files", func(f *fakeProc) { f.it(nil) },
			&process.OpenError{Err: &os.PathError{Op: "open", Err: unix.EMFILE}},
			Unexplained, "fd-limit", "may not open more files",
			"sudo prlimit --pid $$ --nofile=65536; goprof record --pid 77"},
		{"something else", func(f *fakeProc) { f.it(nil) }, fmt.Errorf("what nobody thought of"),
			Unexplained, "unknown", "what nobody thought of", "goprof doctor --pid 77"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFakeProc(t)
			c.setup(f)
			h := Host{Proc: f.dir, Command: "goprof record --pid 77", owner: func(path string) (int, bool) {
				b, err := os.ReadFile(path)
				s := procfs.ParseStatus(b)
				if s.Name == "undumpable" {
					return 0, err == nil
				}
				return s.EUID, err == nil
			}}
			got := h.Explain(77, c.err)
			if got.Class != c.class || got.Name != c.cause || !strings.Contains(got.Why, c.why) ||
				!strings.Contains(got.Remedy, c.remedy) {
				t.Errorf("got  %v %s: %s\n     try %s\nwant %v %s: %s\n     try %s",
					got.Class, got.Name, got.Why, got.Remedy, c.class, c.cause, c.why, c.remedy)
			}
			if got.Why == "" || got.Remedy == "" && c.cause != "other-cpu" {
				t.Errorf("it does not end the search: %+v", got)
			}
		})
	}
}

// TestInstead: only the number after --pid is a pid, and quotes stay whole.
func TestInstead(t *testing.T) {
	for command, want := range map[string]string{
		"goprof record --pid 30":              "goprof record --pid 7",
		"goprof record -d 30 --pid 30":        "goprof record -d 30 --pid 7",
		"goprof record -r 30 -p=30":           "goprof record -r 30 -p=7",
		"goprof dump -p30":                    "goprof dump -p7",
		"goprof record --pid=30 -o 'a  b 30'": "goprof record --pid=7 -o 'a  b 30'",
		"goprof record --pid 29,30":           "goprof record --pid 7",
		"goprof record --pid 130":             "goprof record --pid 7",
		"":                                    "goprof record --pid 7",
	} {
		if got := (Host{Command: command}).instead(30, 7); got != want {
			t.Errorf("%q: %q, want %q", command, got, want)
		}
	}
}

// mapsOf is the text of /proc/PID/maps of a process with these files.
func mapsOf(files ...string) string {
	var b strings.Builder
	for i, file := range files {
		fmt.Fprintf(&b, "%08x-%08x r-xp 00000000 fd:01 %d                   %s\n", 0x400000+i<<16, 0x401000+i<<16, i+1, file)
	}
	return b.String() + "7ffe00000000-7ffe00001000 rw-p 00000000 00:00 0                          [stack]\n"
}

// nativeImageFile makes a program that runs, with a section name of a native image.
func nativeImageFile(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile("/bin/sleep")
	if err != nil {
		t.Fatal(err)
	}
	// Both names have the same length, so only the section's name changes.
	b = []byte(strings.ReplaceAll(string(b), ".gnu.hash\x00", ".svm_heap\x00"))
	path := filepath.Join(t.TempDir(), "app")
	if err := os.WriteFile(path, b, 0o755); err != nil {
		t.Fatal(err)
	}
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if f.Section(".svm_heap") == nil {
		t.Skip("this machine's sleep has no section .gnu.hash")
	}
	return path
}
