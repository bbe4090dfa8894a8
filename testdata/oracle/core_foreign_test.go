//go:build linux

package oracle

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"goprof/output/dumps"
	"goprof/process"
	"goprof/profile"
	"goprof/testdata/corefile"
	"goprof/testdata/jvmtest"
)

// keepCore keeps a core in the folder GOPROF_KEEP_CORES, if there is one.
func keepCore(t *testing.T, core, name string, dead *profile.Dump) {
	t.Helper()
	if dir := os.Getenv("GOPROF_KEEP_CORES"); dir != "" {
		keepIn(t, dir, core, name, dead)
	}
}

// keepIn copies a core into a folder, with the files that the dead JVM had mapped (below root) and the dump that this
// machine makes of it. TestForeignCores reads them, perhaps on another machine.
func keepIn(t *testing.T, dir, core, name string, dead *profile.Dump) {
	t.Helper()
	name = filepath.Join(dir, strings.ReplaceAll(name, " ", "-"))
	copyBig(t, core, name+".core")
	_, j := openCore(t, core, process.CoreOptions{})
	defer j.Close()
	for _, m := range j.Core.Mappings() {
		to := filepath.Join(dir, "root", m.Path)
		if st, err := os.Stat(m.Path); err != nil || !st.Mode().IsRegular() || filepath.Clean(m.Path) == core {
			continue // what is no file, or is gone
		}
		if _, err := os.Stat(to); err != nil {
			copyBig(t, m.Path, to)
		}
	}
	if err := os.WriteFile(name+".json", jsonOfCore(t, dead), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestForeignCores reads the cores that another machine has kept, perhaps one with another CPU (scripts/test-arm64.sh,
// stage cores): what this machine tells of them is what that one told, to the byte. Where GOPROF_FOREIGN_CORES names no
// folder with such cores, it reads one of this machine with nothing but the files that were kept with it.
func TestForeignCores(t *testing.T) {
	t.Parallel()
	dir := os.Getenv("GOPROF_FOREIGN_CORES")
	if dir == "" {
		dir = t.TempDir()
		jvm := jvmtest.Start(t, jvmtest.JDKs(t)[0], "truth.LocksGraph", "-Xmx64m", "--", "7", "12", "mrw", "0")
		core := corefile.Write(t, jvm.PID)
		keepIn(t, dir, core, "own", dumpCore(t, core, process.CoreOptions{}))
	}
	cores, _ := filepath.Glob(filepath.Join(dir, "*.core"))
	if len(cores) == 0 {
		t.Fatalf("no cores in %s", dir)
	}
	frames := 0
	for _, core := range cores {
		want, err := os.ReadFile(strings.TrimSuffix(core, ".core") + ".json")
		if err != nil {
			t.Error(err)
			continue
		}
		d := dumpCore(t, core, process.CoreOptions{Root: filepath.Join(dir, "root")})
		if got := jsonOfCore(t, d); !bytes.Equal(got, want) {
			t.Errorf("%s: another dump:\n%s", core, firstDifference(got, want))
		}
		for i := range d.Threads {
			frames += len(d.Threads[i].Stack.Frames)
		}
	}
	t.Logf("%d cores, %d frames are the same", len(cores), frames)
}

// jsonOfCore is a dump as JSON, without the file's name.
func jsonOfCore(t *testing.T, d *profile.Dump) []byte {
	t.Helper()
	core := *d.Core
	core.File = ""
	without := *d
	without.Core = &core
	var b bytes.Buffer
	if err := dumps.JSON(&b, &without, dumps.Shape{}); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// firstDifference is the first line in which two texts differ, of both.
func firstDifference(got, want []byte) string {
	a, b := strings.Split(string(got), "\n"), strings.Split(string(want), "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return a[i] + "\n" + b[i]
		}
	}
	return "one ends before the other"
}

// copyBig copies a file of any size, and makes its folder.
func copyBig(t *testing.T, from, to string) {
	t.Helper()
	in, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		t.Fatal(err)
	}
	out, err := os.Create(to)
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.Copy(out, in)
	if closed := out.Close(); err == nil {
		err = closed
	}
	if err != nil {
		t.Fatal(err)
	}
}
