package hserr

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"goprof/profile"
)

// TestRealFiles: files of JVMs that were made to crash, of each JDK from 8 to 27. Everything that tells where they ran
// was taken out.
func TestRealFiles(t *testing.T) {
	for what, id := range map[string]profile.FindingID{"kill": profile.SignalSent, "oom": profile.CrashOnOOM,
		"poke": profile.UnsafeAccess} {
		files, _ := filepath.Glob("testdata/" + what + "*.txt")
		if len(files) != 7 {
			t.Errorf("%s: %d files", what, len(files))
		}
		for _, name := range files {
			got := judged(t, name)
			if len(got.Findings) != 1 || got.Findings[0].ID != id || len(got.Findings[0].Evidence) < 2 {
				t.Errorf("%s: %+v", name, got.Findings)
			}
			for _, note := range got.Notes {
				if strings.Contains(note, "cut off") {
					t.Errorf("%s: %s", name, note)
				}
			}
			if !strings.Contains(strings.Join(got.Notes, "\n"), "JRE version") && len(got.Notes) < 3 {
				t.Errorf("%s: %q", name, got.Notes)
			}
		}
	}
}

func judged(t *testing.T, name string) *profile.Triage {
	t.Helper()
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	r, err := Parse(file)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return Judge(r)
}

const header = "#\n# A fatal error has been detected by the Java Runtime Environment:\n#\n"

// made are files as HotSpot would write them. Each row has another form of the line in question.
var made = []struct {
	name, text, evidence, next string
	id                         profile.FindingID
}{
	{"mmap failed", "#\n# There is insufficient memory for the Java Runtime Environment to continue.\n" +
		"# Native memory allocation (mmap) failed to map 2147483648 bytes. Error detail: committing reserved " +
		"memory.\n\n" +
		"/proc/meminfo:\nMemTotal:        4194304 kB\nMemAvailable:     204800 kB\n\nEND.\n",
		"the machine had 200 MiB available", "", profile.NativeMemory},
	{"thread could not be made", "#\n# There is insufficient memory for the Java Runtime Environment to continue.\n" +
		"# Cannot create worker GC thread. Out of system resources.\n", "", "-Xmx", profile.NativeMemory},
	{"address space", "#\n# There is insufficient memory for the Java Runtime Environment to continue.\n" +
		"# Native memory allocation (malloc) failed to allocate 32744 bytes for ChunkPool::allocate\n\nrlimit: " +
		"STACK 8192k, AS 3000000k\n",
		"it wanted 31 KiB", "ulimit -v unlimited", profile.NativeMemory},
	{"stack overflow in C", header + "#  SIGSEGV (0xb) at pc=0x00007f0000001000, pid=7, tid=8\n# Problematic " +
		"frame:\n# C  [libacme.so+0x10]  deep+0x1\n\n" +
		"Stack: [0x00007f1000000000,0x00007f1000100000],  sp=0x00007f1000000ff0,  free space=3k\n" +
		"siginfo: si_signo: 11 (SIGSEGV), si_code: 2 (SEGV_ACCERR), si_addr: 0x00007f1000000fe8\n",
		"the stack ends at 0x7f1000000000", "-Xss2m", profile.StackOverflow},
	{"truncated file", header + "#  SIGBUS (0x7) at pc=0x00007f0000001000, pid=7, tid=8\n# Problematic frame:\n# v " +
		" ~StubRoutines::jbyte_disjoint_arraycopy\n\n" +
		"siginfo: si_signo: 7 (SIGBUS), si_code: 2 (BUS_ADRERR), si_addr: 0x00007f1000000fe8\n",
		"beyond the end of a mapped file", "df /tmp", profile.BusError},
	{"C2 crashed", header + "#  SIGSEGV (0xb) at pc=0x00007f0000001000, pid=7, tid=8\n# Problematic frame:\n# V  " +
		"[libjvm.so+0x10]  PhaseIdealLoop::f()+0x1\n\n" +
		"Current thread (0x00007f00000a0000):  JavaThread \"C2 CompilerThread0\" daemon [_thread_in_native, id=9]\n\n" +
		"Current CompileTask:\nC2:   1234   45       4       com.example.Shop::pay (123 bytes)\n\n",
		"it compiled C2:", "exclude,com.example.Shop::pay", profile.CompilerCrash},
	{"compiled method", header + "#  SIGSEGV (0xb) at pc=0x00007f0000001000, pid=7, tid=8\n# Problematic frame:\n" +
		"# J 1234 c2 com.example.Shop.pay(I)V (57 bytes) @ 0x00007f0000001000 [0x00007f0000000f00+0x100]\n", "",
		"exclude,com.example.Shop::pay", profile.CompiledCrash},
	{"collector", header + "#  SIGSEGV (0xb) at pc=0x00007f0000001000, pid=7, tid=8\n# Problematic frame:\n# V  " +
		"[libjvm.so+0x10]\n\n" +
		"Current thread (0x00007f00000a0000):  WorkerThread \"GC Thread#2\" [id=9]\n", "", "-Xcheck:jni",
		profile.CollectorCrash},
	{"JNI", header + "#  SIGSEGV (0xb) at pc=0x00007f0000001000, pid=7, tid=8\n# Problematic frame:\n# C  " +
		"[libc.so.6+0x10]  strlen+0x1\n\n" +
		"Native frames: (J=compiled Java code)\nC  [libc.so.6+0x10]  strlen+0x1\nC  [libacme.so+0x20]  " +
		"Java_a_B_c+0x1\nj  a.B.c()V+0\n\n",
		"the frame is [libacme.so+0x20]", "-Xcheck:jni", profile.NativeCrash},
	{"assertion", header + "#  Internal Error (g1CollectedHeap.cpp:123), pid=7, tid=8\n#  guarantee(x) failed: " +
		"bad\n#\n", "guarantee(x) failed", "newer update", profile.JVMCrash},
	{"null", header + "#  SIGSEGV (0xb) at pc=0x00007f0000001000, pid=7, tid=8\n# Java VM: OpenJDK 64-Bit Server " +
		"VM (21, linux-aarch64)\n# Problematic frame:\n# V  [libjvm.so+0x10]\n\n" +
		"siginfo: si_signo: 11 (SIGSEGV), si_code: 1 (SEGV_MAPERR), si_addr: 0x0000000000000008\n\nInstructions: " +
		"(pc=0x00007f0000001000)\n0x00007f0000001000:   c0 03 5f d6\n\n",
		"c0 03 5f d6 (4 bytes), a return", "", profile.JVMCrash},
}

func TestMadeFiles(t *testing.T) {
	for _, row := range made {
		r, err := Parse(strings.NewReader(row.text))
		if err != nil {
			t.Errorf("%s: %v", row.name, err)
			continue
		}
		got := Judge(r).Findings
		if len(got) == 0 || got[0].ID != row.id || !strings.Contains(strings.Join(got[0].Evidence, "\n"),
			row.evidence) ||
			!strings.Contains(got[0].Next, row.next) {
			t.Errorf("%s: %+v", row.name, got)
		}
		if !Is([]byte(row.text)) {
			t.Errorf("%s: not known by its beginning", row.name)
		}
	}
	text := made[0].text + "container (cgroup) information:\nmemory_limit_in_bytes: 1048576 " +
		"k\nmemory_usage_in_bytes: 1040000 k\n"
	r, _ := Parse(strings.NewReader(text))
	if got := Judge(r).Findings; len(got) != 2 || got[1].ID != profile.ContainerLimit {
		t.Errorf("%+v", got)
	}
	if _, err := Parse(strings.NewReader("#!/bin/sh\n")); err == nil {
		t.Error("a script is taken")
	}
}

// TestNothingSecret: no output contains the command line or the environment.
func TestNothingSecret(t *testing.T) {
	r, err := Parse(strings.NewReader(made[0].text + "\nCommand Line: -Dx=hunter2 App hunter2\n\nVM " +
		"Arguments:\njava_command: App hunter2\n" +
		"C  hunter2\n\nEnvironment Variables:\nTOKEN=hunter2\nrlimit hunter2\n"))
	if err != nil {
		t.Fatal(err)
	}
	got := Judge(r)
	for _, f := range got.Findings {
		if strings.Contains(f.Claim+f.Next+strings.Join(f.Evidence, ""), "hunter2") {
			t.Errorf("%+v", f)
		}
	}
	if strings.Contains(strings.Join(got.Notes, ""), "hunter2") {
		t.Errorf("%q", got.Notes)
	}
}

func FuzzParse(f *testing.F) {
	files, _ := filepath.Glob("testdata/*.txt")
	for _, name := range files {
		if b, err := os.ReadFile(name); err == nil {
			f.Add(string(b))
		}
	}
	for _, row := range made {
		f.Add(row.text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := Parse(strings.NewReader(text))
		if err != nil {
			return
		}
		got := Judge(r)
		if len(got.Findings) > 2 || len(got.Notes) > 32 || len(r.Frames) > maxFrames || len(r.Code) > maxCode {
			t.Errorf("%d findings, %d notes", len(got.Findings), len(got.Notes))
		}
		for _, f := range got.Findings {
			if f.ID == "" || f.Claim == "" || f.Next == "" || f.Severity == "" {
				t.Errorf("%+v", f)
			}
		}
	})
}
