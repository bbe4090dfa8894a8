package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"goprof/output/jfr"
	"goprof/profile"
)

// writeJFR writes a recording of ten seconds. A request comes every 10 ms, in one of two threads.
func writeJFR(t *testing.T, name string) {
	t.Helper()
	var b bytes.Buffer
	w := jfr.NewWriter(&b, jfr.Options{})
	start := time.Date(2026, 11, 22, 3, 14, 7, 0, time.UTC)
	w.SetMeta(profile.Meta{Version: "v1", Host: "prod-7", PID: 4711, MainClass: "shop.Main", Mode: profile.ModeCPU,
		Interval: 10 * time.Millisecond, Start: start})
	stack := &profile.Stack{Frames: []profile.Frame{{Func: &profile.Func{Name: "shop.Cart.total"}, Kind: profile.C2,
		BCI: -1}}}
	at := func(d time.Duration) profile.Instant {
		return profile.Instant{Wall: start.UnixNano() + int64(d), Ticks: 1e12 + int64(d)}
	}
	for i := range 1000 {
		thread := profile.Thread{TID: 20 + i%2, Name: "http", JavaID: int64(30 + i%2),
			JavaName: []string{"http-1", "http-2"}[i%2]}
		sample := profile.Sample{At: at(time.Duration(i) * 10 * time.Millisecond), Thread: thread, Stack: stack}
		if err := w.Sample(&sample); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(at(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestHeat draws a JFR file: to a file beside it, to the file that -o names, by thread, and parts of the recording.
func TestHeat(t *testing.T) {
	dir := t.TempDir()
	in := filepath.Join(dir, "out.jfr")
	writeJFR(t, in)
	goprof := func(code int, args ...string) (stdout, stderr string) {
		t.Helper()
		// The command runs in a process of its own: it gives up rights that this process needs for other tests.
		var out, told strings.Builder
		cmd := exec.Command("goprof", args...)
		cmd.Stdout, cmd.Stderr = &out, &told
		err := cmd.Run()
		if got := cmd.ProcessState.ExitCode(); got != code {
			t.Errorf("%q: exit code %d, want %d: %v: %s", args, got, code, err, told.String())
		}
		return out.String(), told.String()
	}
	if _, told := goprof(0, "heat", in); told != "heat map: "+filepath.Join(dir, "out.heat.html")+"\n" {
		t.Errorf("told %q", told)
	}
	page := func(name string) string {
		t.Helper()
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	first := page("out.heat.html")
	if goprof(0, "heat", in); page("out.heat.html") != first {
		t.Error("two pages of one recording differ")
	}
	if err := os.WriteFile(filepath.Join(dir, "out.heat.html"), []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if goprof(0, "heat", in); page("out.heat.1.html") != first || page("out.heat.html") != "mine" {
		t.Error("a file that goprof has not drawn is replaced, or there is no page beside it")
	}
	if err := os.Rename(filepath.Join(dir, "out.heat.1.html"), filepath.Join(dir, "out.heat.html")); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"<title>shop.Main</title>", "pid 4711 on prod-7", `"lanes":["http-*"]`, `"columns":10,`, `"looks":1000`, "100 Hz"} {
		if !strings.Contains(page("out.heat.html"), want) {
			t.Errorf("no %q in the page", want)
		}
	}
	own := filepath.Join(dir, "own.html")
	goprof(0, "heat", in, "-o", own, "--title", "one & <two>", "--threads", "--from", "2s", "--to", "5s")
	for _, want := range []string{"<title>one &amp; &lt;two&gt;</title>", `"lanes":["http-1 tid=20","http-2 tid=21"]`, `"columns":3,`, `"looks":300`} {
		if !strings.Contains(page("own.html"), want) {
			t.Errorf("no %q in the page", want)
		}
	}
	_, told := goprof(7, "heat", in, "-o", own, "--thread", "nobody")
	if !strings.Contains(told, "no samples are left of "+in) {
		t.Errorf("told %q", told)
	}
	if !strings.Contains(page("own.html"), "&lt;two&gt;") {
		t.Error("a page was lost for one that could not be drawn")
	}
	if _, told := goprof(9, "heat", in, "-o", in); !strings.Contains(told, "it is the recording itself") {
		t.Errorf("told %q", told)
	}
}
