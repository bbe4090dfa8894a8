package firefox

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"goprof/output/recording"
	"goprof/testdata/sources"
)

// viewer is profiler-cli with one profile loaded. profiler-cli consists of the Firefox Profiler's own code.
type viewer struct {
	t    *testing.T
	home string // the folder of its sockets
}

// load starts a viewer in a process of its own, which ends with the test.
func load(t *testing.T, file []byte) *viewer {
	t.Helper()
	home, err := os.MkdirTemp("", "viewer") // not the test's own folder, because a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	v := &viewer{t, home}
	t.Cleanup(v.stop)
	name := filepath.Join(home, "profile.json.gz")
	if err := os.WriteFile(name, file, 0o600); err != nil {
		t.Fatal(err)
	}
	// On a slow machine the viewer reports "not ready" and continues to load. Queries find out whether it has loaded.
	out, err := v.command("load", "--session", "s", name).CombinedOutput()
	if err != nil {
		t.Logf("load: %v: %s", err, out)
	}
	return v
}

func (v *viewer) command(args ...string) *exec.Cmd {
	script := filepath.Join(sources.Viewers(v.t), "@firefox-devtools/profiler-cli/dist/profiler-cli.js")
	cmd := exec.Command(sources.Node(v.t), append([]string{script}, args...)...)
	cmd.Env = append(os.Environ(), "HOME="+v.home)
	return cmd
}

// stop ends the viewer, if necessary by its process number.
func (v *viewer) stop() {
	v.command("stop", "--all").Run()
	var session struct{ PID int }
	text, err := os.ReadFile(filepath.Join(v.home, ".profiler-cli", "s.json"))
	if err == nil && json.Unmarshal(text, &session) == nil && session.PID > 1 {
		syscall.Kill(session.PID, syscall.SIGKILL)
	}
	os.RemoveAll(v.home)
}

// ask sends a query and decodes the answer.
func (v *viewer) ask(to any, args ...string) {
	v.t.Helper()
	var out []byte
	var err error
	for range 5 {
		if out, err = v.command(append(args, "--json")...).Output(); err == nil {
			break
		}
	}
	if err != nil {
		text := out
		if e, ok := err.(*exec.ExitError); ok {
			text = append(text, e.Stderr...)
		}
		v.t.Fatalf("%v: %v\n%s", args, err, text)
	}
	if err := json.Unmarshal(out, to); err != nil {
		v.t.Fatalf("%v: %v in %.300s", args, err, out)
	}
}

// TestViewer: the Firefox Profiler's own code finds the threads, samples, looks and markers that are in the file. For
// each thread it finds the same number of looks in each function.
func TestViewer(t *testing.T) {
	sources.Viewers(t)
	for name, src := range map[string]recording.Source{
		"cpu": sources.CPU(), "wall": sources.Wall(), "jfr": sources.RealJFR(t, sources.Many(3000), false),
		"deep": sources.Deep(2048), "evil names": sources.EvilNames(), "empty": sources.Empty(), "parts": sources.Parts(),
	} {
		t.Run(name, func(t *testing.T) {
			file := written(t, src, Options{})
			f := checked(t, file)
			v := load(t, file)
			var all struct{ ThreadCount int }
			v.ask(&all, "profile", "info")
			if all.ThreadCount != len(f.Threads) {
				t.Fatalf("%d threads, we wrote %d", all.ThreadCount, len(f.Threads))
			}
			for i := range min(len(f.Threads), 4) {
				v.compare(f, i, name == "evil names")
			}
		})
	}
}

// compare compares the viewer's and the file's data of a thread.
func (v *viewer) compare(f *file, i int, hostile bool) {
	v.t.Helper()
	th := &f.Threads[i]
	var info struct {
		Name                     string
		SampleCount, MarkerCount int
	}
	handle := "t-" + strconv.Itoa(i)
	v.ask(&info, "thread", "info", "--thread", handle)
	if info.Name != th.Name || info.SampleCount != th.Samples.Length || info.MarkerCount != th.Markers.Length {
		v.t.Errorf("%+v, we wrote %s with %d samples and %d markers", info, th.Name, th.Samples.Length, th.Markers.Length)
	}
	if hostile || th.Samples.Length == 0 {
		return
	}
	var samples struct {
		CategoryBreakdown struct{ TotalSamples float64 }
		TopFunctionsByTotal,
		TopFunctionsBySelf []struct {
			Name                      string
			TotalSamples, SelfSamples float64
		}
	}
	v.ask(&samples, "thread", "samples", "--thread", handle, "--include-idle", "--limit", "100000")
	want, ours := 0.0, make(map[string]float64)
	for k, stack := range th.Samples.Stack {
		if stack != nil {
			want += th.Samples.Weight[k]
			ours[f.leaf(*stack)] += th.Samples.Weight[k]
		}
	}
	if samples.CategoryBreakdown.TotalSamples != want {
		v.t.Errorf("%s: %v looks, we wrote %v", th.Name, samples.CategoryBreakdown.TotalSamples, want)
	}
	seen := 0
	for _, fn := range samples.TopFunctionsBySelf {
		if seen++; fn.SelfSamples != ours[fn.Name] {
			v.t.Errorf("%s: %s has %v, we wrote %v", th.Name, fn.Name, fn.SelfSamples, ours[fn.Name])
		}
	}
	if seen == 0 && want > 0 {
		v.t.Errorf("%s: no functions", th.Name)
	}
}

// leaf returns the name of a stack's leaf, with its image's name first, as in the viewer's lists.
func (f *file) leaf(stack int) string {
	fn := f.Shared.FrameTable.Func[f.Shared.StackTable.Frame[stack]]
	name := f.Shared.StringArray[f.Shared.FuncTable.Name[fn]]
	if r := f.Shared.FuncTable.Resource[fn]; r >= 0 {
		return f.Shared.StringArray[f.Shared.ResourceTable.Name[r]] + "!" + name
	}
	return name
}
