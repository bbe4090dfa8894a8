//go:build linux

package oracle

import (
	"cmp"
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"goprof/testdata/jvmtest"
)

// noLinkerRules: the linker makes no unwind rules for its own stubs. It is an option only where it would (x86-64).
const noLinkerRules = "-Wl,--no-ld-generated-unwind-info"

// The two ways in which C is compiled: with unwind information and symbols, and without both.
var (
	withCFI = []string{"-O2", "-fomit-frame-pointer", "-fasynchronous-unwind-tables"}
	bare    = []string{"-O2", "-fomit-frame-pointer", "-fno-asynchronous-unwind-tables", "-fno-unwind-tables",
		"-fvisibility=hidden", "-nostartfiles", noLinkerRules} // what gcc starts libraries with has rules on arm64
)

// nativeLibrary is a compiled file of testdata/native.
type nativeLibrary struct {
	path     string
	names    []elf.Symbol // of its functions, by address
	stripped bool         // the file itself has no names, and no unwind information
}

// buildNative compiles one file of testdata/native with gcc.
func buildNative(t *testing.T, source, library string, options ...string) *nativeLibrary {
	t.Helper()
	jvmtest.NotQuick(t, jvmtest.Builds)
	need := func(err error) {
		t.Helper()
		if err == nil {
			return
		}
		if os.Getenv("GOPROF_REQUIRE_JVM") != "1" {
			t.Skipf("needs gcc (scripts/tools.sh installs it): %v", err)
		}
		t.Fatalf("GOPROF_REQUIRE_JVM=1, but no gcc (scripts/tools.sh installs it): %v", err)
	}
	gcc, err := exec.LookPath("gcc")
	need(err)
	include := jniHeaders(t)
	lib := &nativeLibrary{path: filepath.Join(t.TempDir(), library)}
	if help, _ := exec.Command("ld", "--help").Output(); !strings.Contains(string(help),
		strings.TrimPrefix(noLinkerRules, "-Wl,--")) {
		// it makes none for this CPU
		options = slices.DeleteFunc(slices.Clone(options), func(o string) bool { return o == noLinkerRules })
	}
	args := append([]string{"-std=gnu11", "-Wall", "-fPIC", "-shared", "-pthread", "-I" + include,
		"-I" + filepath.Join(include, "linux")},
		options...)
	args = append(args, "-o", lib.path, filepath.Join("..", "..", "testdata", "native", source))
	if out, err := exec.Command(gcc, args...).CombinedOutput(); err != nil {
		t.Fatalf("gcc %q: %v\n%s", args, err, out)
	}
	lib.readNames(t)
	return lib
}

// jniHeaders is the directory of jni.h. Its table of functions only grows from JDK to JDK, so
// the oldest one's does for all.
func jniHeaders(t *testing.T) string {
	t.Helper()
	for _, jdk := range jvmtest.JDKs(t) {
		dir := filepath.Join(jdk.Home, "include")
		if _, err := os.Stat(filepath.Join(dir, "jni.h")); err == nil {
			return dir
		}
	}
	t.Fatalf("none of %v has include/jni.h", jvmtest.JDKs(t))
	return ""
}

func (l *nativeLibrary) name() string { return filepath.Base(l.path) }

func (l *nativeLibrary) readNames(t *testing.T) {
	t.Helper()
	f, err := elf.Open(l.path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	symbols, err := f.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range symbols {
		if elf.ST_TYPE(s.Info) == elf.STT_FUNC && s.Size > 0 {
			l.names = append(l.names, s)
		}
	}
	slices.SortFunc(l.names, func(a, b elf.Symbol) int { return cmp.Compare(a.Value, b.Value) })
}

// strip takes the symbols away, and proves that no unwind information is there, too.
func (l *nativeLibrary) strip(t *testing.T) *nativeLibrary {
	t.Helper()
	if out, err := exec.Command("strip", l.path).CombinedOutput(); err != nil {
		t.Fatalf("strip: %v\n%s", err, out)
	}
	f, err := elf.Open(l.path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if f.Section(".symtab") != nil || f.Section(".eh_frame_hdr") != nil || f.Section(".debug_frame") != nil {
		t.Fatalf("%s has symbols, or unwind information", l.name())
	}
	// What is left is the mark of the table's end, 4 bytes, from the compiler's own crtendS.o.
	if s := f.Section(".eh_frame"); s != nil && s.Size > 4 {
		t.Fatalf("%s has %d bytes of unwind information", l.name(), s.Size)
	}
	l.stripped = true
	return l
}

// nameAt turns "lib.so+0x1f", which is how a function without a symbol is shown, into the
// name that it had in the source. Other names are returned as they are.
func (l *nativeLibrary) nameAt(shown string) string {
	digits, ok := strings.CutPrefix(shown, l.name()+"+")
	if !ok {
		return shown
	}
	at, err := strconv.ParseUint(digits, 0, 64)
	if err != nil {
		return shown
	}
	for _, s := range l.names {
		if at >= s.Value && at-s.Value < s.Size {
			return s.Name
		}
	}
	return shown
}
