package unwind

import (
	"bytes"
	"compress/gzip"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"goprof/process"
	"goprof/profile"
	"goprof/testdata/captured"
	"goprof/vmstructs"
)

var update = flag.Bool("update", false, "write the golden stacks of the recorded walks anew")

func recordings(t testing.TB, folder string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", folder, "*.walks"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no recordings in testdata/%s: %v", folder, err)
	}
	return files
}

// recorded opens a recording and a walker over it.
func recorded(t testing.TB, file string) (*captured.Recording, *Walker) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rec, err := captured.Load(f)
	if err != nil {
		t.Fatal(err)
	}
	vm, err := vmstructs.Open(rec)
	if err != nil {
		t.Fatal(err)
	}
	w := New(rec, vm)
	w.RawNames = true // names are compared in the JVM's own form
	return rec, w
}

// TestRecordedWalks replays recorded walks of real JVMs, on any machine. The stacks must be those of the recording.
func TestRecordedWalks(t *testing.T) {
	for _, file := range recordings(t, "walks") {
		t.Run(filepath.Base(file), func(t *testing.T) {
			rec, w := recorded(t, file)
			var text bytes.Buffer
			eachWalk(rec, w, func(snap *process.Snapshot, stack *profile.Stack) { writeStack(&text, snap, stack) })
			compareGolden(t, strings.TrimSuffix(file, ".walks")+".golden.gz", text.Bytes())
		})
	}
}

func writeStack(out io.Writer, snap *process.Snapshot, st *profile.Stack) {
	fmt.Fprintf(out, "tid %d %v\n", snap.TID, st.Truncated)
	for _, f := range st.Frames {
		fmt.Fprintf(out, "  %v %s line %d bci %d level %d sp+%#x\n", f.Kind, f.Func.Name, f.Line, f.BCI, f.Level,
			f.SP-snap.SP)
	}
}

func compareGolden(t *testing.T, file string, got []byte) {
	t.Helper()
	if *update {
		var b bytes.Buffer
		z, _ := gzip.NewWriterLevel(&b, gzip.BestCompression)
		z.Write(got)
		z.Close()
		if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	want, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Equal(got, want) {
		return
	}
	g, w := strings.Split(string(got), "\n"), strings.Split(string(want), "\n")
	for i := range min(len(g), len(w)) {
		if g[i] != w[i] {
			t.Fatalf("line %d is\n%s\nnot\n%s", i+1, g[i], w[i])
		}
	}
	t.Fatalf("%d lines, not %d", len(g), len(w))
}

// TestWarmWalkDoesNotAllocate: once everything is cached, a walk allocates nothing.
func TestWarmWalkDoesNotAllocate(t *testing.T) {
	files := recordings(t, "walks")
	for _, file := range files {
		rec, w := recorded(t, file)
		var stack profile.Stack
		last := len(rec.Snapshots) - 1
		for i, snap := range rec.Snapshots {
			rec.Step(i)
			w.Walk(snap, &stack)
		}
		n := testing.AllocsPerRun(10, func() { w.Walk(rec.Snapshots[last], &stack) })
		if n > 0 {
			t.Errorf("%s: %.1f allocations a walk", filepath.Base(file), n)
		}
	}
}

// BenchmarkWalk replays recorded javac, walk after walk. This includes the first round, in which everything is new to
// the walker. GOPROF_WALKS names another recording, of thousands of walks; make bench makes one.
func BenchmarkWalk(b *testing.B) {
	files := recordings(b, "walks")
	if f := os.Getenv("GOPROF_WALKS"); f != "" {
		files, _ = filepath.Glob(f)
	}
	for _, file := range files {
		b.Run(filepath.Base(file), func(b *testing.B) {
			rec, w := recorded(b, file)
			var stack profile.Stack
			b.ReportAllocs()
			frames, walks := 0, 0
			for b.Loop() {
				i := walks % len(rec.Snapshots)
				rec.Step(i) // some memory changes belong to the cost, so the clock is not stopped
				w.Walk(rec.Snapshots[i], &stack)
				frames += len(stack.Frames)
				walks++
			}
			b.ReportMetric(float64(frames)/float64(walks), "frames/op")
		})
	}
}
