package speedscope

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"goprof/output"
	"goprof/output/recording"
	"goprof/output/timeline"
	"goprof/testdata/sources"
)

// file is the data that the tests read from our files. It shares no code with the writer, on purpose.
type file struct {
	Schema   string `json:"$schema"`
	Exporter string `json:"exporter"`
	Name     string `json:"name"`
	Active   int    `json:"activeProfileIndex"`
	Shared   struct {
		Frames []struct {
			Name string
			File string
			Line int
		}
	}
	Profiles []struct {
		Type, Name, Unit     string
		StartValue, EndValue int64
		Samples              [][]int
		Weights              []int64
	}
}

func written(t testing.TB, src recording.Source, o Options) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, src, o); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// checked reads a file, and checks what a schema cannot: indices, bounds and sums.
func checked(t *testing.T, data []byte) (f file) {
	t.Helper()
	if err := json.Unmarshal(data, &f); err != nil {
		t.Fatalf("%v in %.200s", err, data)
	}
	if f.Active < 0 || f.Active >= len(f.Profiles) {
		t.Errorf("profile %d of %d is active", f.Active, len(f.Profiles))
	}
	for _, p := range f.Profiles {
		if p.Type != "sampled" || len(p.Samples) != len(p.Weights) || p.Name == "" {
			t.Errorf("%q of type %s: %d samples, %d weights", p.Name, p.Type, len(p.Samples), len(p.Weights))
		}
		sum := uint64(0)
		for i, s := range p.Samples {
			if p.Weights[i] < 0 {
				t.Errorf("weight %d", p.Weights[i])
			}
			sum += uint64(p.Weights[i])
			for _, frame := range s {
				if frame < 0 || frame >= len(f.Shared.Frames) {
					t.Fatalf("frame %d of %d", frame, len(f.Shared.Frames))
				}
			}
		}
		if p.StartValue != 0 || uint64(p.EndValue) != min(sum, math.MaxInt64) {
			t.Errorf("%s: from %d to %d, weights of %d", p.Name, p.StartValue, p.EndValue, sum)
		}
	}
	for _, fr := range f.Shared.Frames {
		if fr.Name == "" || fr.Line < 0 || strings.ContainsFunc(fr.Name+fr.File, output.Unsafe) {
			t.Errorf("frame %+v", fr)
		}
	}
	if bytes.ContainsAny(data, "<>") {
		t.Error("a character that can end a script")
	}
	return f
}

// lines returns the profiles of a file as text, for people and for comparisons.
func (f *file) lines() (all []string) {
	for _, p := range f.Profiles {
		all = append(all, fmt.Sprintf("%s (%s)", p.Name, p.Unit))
		for i, s := range p.Samples {
			var names []string
			for _, n := range s {
				name := f.Shared.Frames[n].Name
				if line := f.Shared.Frames[n].Line; line != 0 {
					name += fmt.Sprint(":", line)
				}
				names = append(names, name)
			}
			all = append(all, fmt.Sprint(strings.Join(names, ";"), " ", p.Weights[i]))
		}
	}
	return all
}

const (
	java   = "shop.Server.serve:95;shop.Server.serve:91;shop.Server.serve:88;shop.Price.of:30;shop.Price.round:12"
	native = "[truncated: no unwind info];G1ParTask::work(unsigned int);write"
)

// TestCPU: each thread has a profile ordered by time, weighted by CPU time.
func TestCPU(t *testing.T) {
	want := []string{
		"worker-1 tid=4712 (nanoseconds)", java + " 3000000", native + " 500000",
		"request 7 virtual #77 (nanoseconds)", java + " 3000000",
		"GC Thread#0 tid=4720 (nanoseconds)", native + " 1000000",
		"main tid=4711 (nanoseconds)", " 1000000",
	}
	for name, src := range map[string]recording.Source{
		"fake": sources.CPU(), "JFR": sources.RealJFR(t, sources.CPU(), false),
	} {
		f := checked(t, written(t, src, Options{}))
		if d := cmp.Diff(want, f.lines()); d != "" {
			t.Errorf("%s: %s", name, d)
		}
		if f.Exporter != "goprof 1.0" || !strings.Contains(f.Name, "shop.jfr, cpu, pid 4711") && name == "fake" {
			t.Errorf("%q by %q", f.Name, f.Exporter)
		}
	}
}

// TestWall: a look stands for its span. Its leaf is its state.
func TestWall(t *testing.T) {
	want := []string{
		"worker-1 tid=4712 (nanoseconds)", java + ";[running] 10000000", java + ";[socket] 500000000",
		java + ";[running] 10000000",
		"request 7 virtual #77 (nanoseconds)", "shop.Server.serve:95;jdk.internal.misc.Unsafe.park;[parked] 520000000",
	}
	for name, src := range map[string]recording.Source{
		"fake": sources.Wall(), "JFR": sources.RealJFR(t, sources.Wall(), true),
	} {
		f := checked(t, written(t, src, Options{}))
		if d := cmp.Diff(want, f.lines()); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

// TestNoTimes: samples without times and CPU time are weighted by their counts.
func TestNoTimes(t *testing.T) {
	f := checked(t, written(t, sources.Untimed(), Options{}))
	want := []string{"all threads (none)", java + " 7", native + " 3", java + " 1"}
	if d := cmp.Diff(want, f.lines()); d != "" {
		t.Error(d)
	}
}

// TestEdges: no samples, one sample, the deepest possible stack, and malicious names and numbers.
func TestEdges(t *testing.T) {
	for name, src := range edges() {
		f := checked(t, written(t, src, Options{}))
		if len(f.Profiles) == 0 || len(f.Profiles[0].Samples) == 0 != (name == "empty") {
			t.Errorf("%s: %d profiles", name, len(f.Profiles))
		}
		if name == "deep" && (len(f.Profiles[0].Samples[0]) != 2048 || len(f.Shared.Frames) != 1) {
			t.Errorf("%d frames of %d", len(f.Profiles[0].Samples[0]), len(f.Shared.Frames))
		}
	}
}

func edges() map[string]*sources.Fake {
	return map[string]*sources.Fake{"empty": sources.Empty(), "one": sources.One(), "deep": sources.Deep(2048),
		"hostile": sources.Hostile(), "parts": sources.Parts()}
}

// TestBytes: the weight of an allocation is its bytes.
func TestBytes(t *testing.T) {
	src := sources.One()
	src.Samples[0].Bytes = 4096
	if f := checked(t, written(t, src, Options{})); f.Profiles[0].Unit != "bytes" || f.Profiles[0].EndValue != 4096 {
		t.Errorf("%+v", f.Profiles)
	}
}

// TestTooMany: samples that do not fit are merged, and none of their time is lost. The file and the caller both get a
// note.
func TestTooMany(t *testing.T) {
	src := sources.Many(20_000)
	var told []string
	f := checked(t, written(t, src, Options{Samples: 5000, Tracks: 8, Tell: func(s string) { told = append(told, s) }}))
	samples, weight := 0, int64(0)
	for _, p := range f.Profiles {
		samples += len(p.Samples)
		weight += p.EndValue
	}
	if samples > 5000 || weight != int64(20_000*time.Millisecond) || len(f.Profiles) != 8 {
		t.Errorf("%d samples of %v in %d profiles", samples, time.Duration(weight), len(f.Profiles))
	}
	if len(told) != 1 || !strings.Contains(f.Name, told[0]) || f.Profiles[7].Name != "other threads (13 threads)" &&
		f.Profiles[0].Name != "other threads (13 threads)" {
		t.Errorf("%q in %q, last %q", told, f.Name, f.Profiles[7].Name)
	}
	all, err := collect(src, Options{}, 40*300)
	if err != nil {
		t.Fatal(err)
	}
	if n, refs := size(all[0]); err != nil || refs > 40*300 || n < 100 {
		t.Errorf("%d frames of %d samples", refs, n)
	}
}

// TestError: Write returns the error of a source, and the error of a disk.
func TestError(t *testing.T) {
	if err := Write(io.Discard, sources.Broken{Fake: sources.Empty()}, Options{}); !errors.Is(err, sources.ErrBroken) {
		t.Error(err)
	}
	if err := Write(sources.FullDisk{}, sources.Many(1000), Options{}); !errors.Is(err, sources.ErrBroken) {
		t.Error(err)
	}
}

// all returns a file for each kind of recording, by name.
func all(t *testing.T) map[string][]byte {
	t.Helper()
	files := map[string][]byte{"cpu": written(t, sources.CPU(), Options{}), "wall": written(t, sources.Wall(), Options{}),
		"none": written(t, sources.Untimed(), Options{}), "many": written(t, sources.Many(2000), Options{}),
		"jfr": written(t, sources.RealJFR(t, sources.CPU(), false), Options{})}
	for name, src := range edges() {
		files[name] = written(t, src, Options{})
	}
	return files
}

// TestSchema: speedscope's own schema, checked by ajv, accepts our files, and refuses a wrong one.
func TestSchema(t *testing.T) {
	node, modules := sources.Node(t), sources.Viewers(t)
	script := sources.Script(t, `
const Ajv = require(process.argv[2] + "/ajv"), fs = require("fs");
const schema = JSON.parse(fs.readFileSync(process.argv[2] + "/speedscope/dist/release/file-format-schema.json"));
const check = new Ajv({strict: false}).compile(schema);
for (const name of process.argv.slice(3)) {
  const ok = check(JSON.parse(fs.readFileSync(name)));
  console.log(name.replace(/.*\//, ""), ok ? "good" : "bad " + JSON.stringify(check.errors));
}`)
	args := []string{script, modules}
	want := map[string]bool{"wrong": true}
	dir := t.TempDir()
	files := all(t)
	files["wrong"] = bytes.Replace(files["cpu"], []byte(`"unit":"nanoseconds"`), []byte(`"unit":"fortnights"`), 1)
	for name, data := range files {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, path)
	}
	out, err := exec.Command(node, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	n := 0
	for line := range strings.Lines(string(out)) {
		name, verdict, _ := strings.Cut(strings.TrimSpace(line), " ")
		if n++; want[name] != strings.HasPrefix(verdict, "bad") {
			t.Error(line)
		}
	}
	if n != len(files) {
		t.Errorf("%d files of %d were checked:\n%s", n, len(files), out)
	}
}

// BenchmarkWrite measures ns per sample of 40 frames.
func BenchmarkWrite(b *testing.B) {
	src := sources.Many(100_000)
	b.ReportAllocs()
	b.ResetTimer()
	for b.Loop() {
		if err := Write(io.Discard, src, Options{}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/100_000, "ns/sample")
}

// size returns the number of samples, and of their frames together.
func size(t *timeline.Timeline) (samples, frames int) {
	for _, tr := range t.Tracks {
		samples += len(tr.Samples)
		for i := range tr.Samples {
			frames += len(t.Path(tr.Samples[i].Node, nil))
		}
	}
	return samples, frames
}
