package main

import (
	"strings"
	"testing"
	"time"

	"goprof/output/batchdir"
	"goprof/profile"
	"goprof/profile/batch"
)

// TestFleet: recordings of two JVMs are sent as those of six. Every kind of server counts them.
func TestFleet(t *testing.T) {
	dir := t.TempDir()
	files, err := batchdir.New(batchdir.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	start := time.Date(2026, 11, 23, 1, 0, 0, 0, time.UTC)
	for pid := 1; pid <= 2; pid++ {
		for n := range 3 {
			g := batch.NewGatherer(batch.GatherOptions{})
			at := start.Add(time.Duration(n) * time.Minute)
			for _, thread := range []string{"main", "http-1", "http-2"} {
				g.Add(&profile.Sample{At: profile.Instant{Wall: at.UnixNano()}, Thread: profile.Thread{TID: 7, Name: thread},
					Stack: &profile.Stack{Frames: []profile.Frame{{Func: &profile.Func{Name: "a.b"}}}}, CPU: time.Millisecond,
					NoState: true})
			}
			files.Offer(g.Take(nil, profile.Meta{PID: pid, Interval: time.Second / 19}, at, at.Add(time.Second)))
		}
	}
	files.Close()
	merged, err := readFolder(dir, 2)
	if err != nil || len(merged) != 2 || len(merged[1]) != 2 || merged[0][0].Looks() != 6 {
		t.Fatalf("%d merged, %v", len(merged), err)
	}
	recorded, err := readFolder(dir, 1)
	if err != nil || len(recorded) != 2 || len(recorded[1]) != 3 || samplesOf(recorded) != 3 {
		t.Fatalf("%d recorded, %v", len(recorded), err)
	}
	p := plan{jvms: 6, services: 3, batches: 2, every: 15 * time.Second}
	for _, kind := range kinds {
		r, err := p.replay(kind, recorded)
		if err != nil || r.message == 0 || r.wire < r.message {
			t.Errorf("%s: %+v, %v", kind.name, r, err)
		}
		// There are six pods. In Pyroscope each has the pools main and http-*.
		if want := map[string]int{"otlp": 6, "pyroscope": 12, "parca": 6}[kind.name]; r.series != want {
			t.Errorf("%s: %d series, want %d", kind.name, r.series, want)
		}
	}
	var text strings.Builder
	if err := run(&text, p, []string{dir}); err != nil || strings.Count(text.String(), "\n") != 5 {
		t.Errorf("%v\n%s", err, text.String())
	}
	if run(&text, p, []string{t.TempDir()}) == nil {
		t.Error("a folder without files is taken")
	}
}
