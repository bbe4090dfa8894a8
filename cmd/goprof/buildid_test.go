//go:build linux

package main

import (
	"bytes"
	"debug/elf"
	"encoding/hex"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"goprof/testdata/jvmtest"
)

// TestBuildIDs: pprof's own tool shows the images of a recording with the build ids of their files. One recording
// was written as pprof, and one was converted from JFR.
func TestBuildIDs(t *testing.T) {
	t.Parallel()
	jdk := jvmtest.JDKs(t)[0]
	jvm := guest(t)
	want := buildIDOf(t, filepath.Join(jdk.Home, "lib/server/libjvm.so"))
	dir := t.TempDir()
	for _, name := range []string{"x.pb.gz", "y.jfr"} {
		record(t, jvm.PID, filepath.Join(dir, name), "-d", "0.5", "--mode", "wall")
	}
	from, to := filepath.Join(dir, "y.jfr"), filepath.Join(dir, "y.pb.gz")
	if code, told := runGoprof(t, "convert", from, "-o", to); code != 0 {
		t.Fatal(told)
	}
	for _, name := range []string{"x.pb.gz", "y.pb.gz"} {
		out, err := exec.Command("go", "tool", "pprof", "-raw", filepath.Join(dir, name)).CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		if line := "libjvm.so " + want + " [FN][FL][LN][IN]"; !strings.Contains(string(out), line) {
			_, mappings, _ := strings.Cut(string(out), "Mappings\n")
			t.Errorf("%s: no %q in\n%s", name, line, mappings)
		}
	}
}

// buildIDOf is the build id of a file, by Go's own reader of ELF.
func buildIDOf(t *testing.T, name string) string {
	t.Helper()
	f, err := elf.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s := f.Section(".note.gnu.build-id")
	if s == nil {
		t.Skipf("%s has no build id", name)
	}
	note, err := s.Data()
	if err != nil {
		t.Fatal(err)
	}
	_, id, ok := bytes.Cut(note, []byte("GNU\x00"))
	if !ok {
		t.Fatalf("%s: %x is no build id", name, note)
	}
	return hex.EncodeToString(id)
}
