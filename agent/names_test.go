//go:build linux

package agent

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"goprof/output/jfr"
	"goprof/output/pprof"
	"goprof/output/recording"
	"goprof/output/replay"
	"goprof/profile"
	"goprof/profile/batch"
	"goprof/profile/resource"
	"goprof/testdata/shipped"
)

// partOfRecording is what is recorded of one JVM: CPU time, an event, waits.
type partOfRecording struct {
	meta    profile.Meta
	samples []*profile.Sample
}

func partsOfRecording() (parts []partOfRecording) {
	of := profile.Meta{Host: "host-7", PID: 4711, MainClass: "/srv/shop.jar", JVM: "25.0.3+9",
		Engine: profile.EnginePtrace, Start: time.Unix(0, shipped.Start), Duration: time.Second}
	add := func(part, mode string, w profile.Weight, wall bool, set func(*profile.Sample)) {
		p := partOfRecording{meta: of, samples: shipped.Samples(50, wall)}
		p.meta.Part, p.meta.Mode, p.meta.Weight = part, mode, w
		if part != profile.EventAlloc {
			p.meta.Interval = shipped.Interval
		}
		for _, s := range p.samples {
			set(s)
		}
		parts = append(parts, p)
	}
	alloc := &profile.EventKind{Name: profile.EventAlloc, Unit: profile.Bytes}
	lock := &profile.EventKind{Name: "lock", Unit: profile.WallTime}
	add("cpu", profile.ModeCPU, profile.Samples, false, func(*profile.Sample) {})
	add("alloc", "alloc", profile.Bytes, false, func(s *profile.Sample) {
		s.Event, s.Bytes, s.CPU, s.NoState = alloc, 1000, 0, true
	})
	add("lock", profile.ModeOffCPU, profile.WallTime, true, func(s *profile.Sample) { s.Event, s.CPU = lock, 0 })
	return parts
}

// sent is what tells a server which profile a batch is of.
func sent(t *testing.T, b *batch.Batch) string {
	t.Helper()
	data, err := pprof.OfBatch(b, nil)
	if err != nil {
		t.Fatal(err)
	}
	file, err := pprof.Read(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	var threads []string
	value := int64(0)
	for i := range b.Samples {
		s := &b.Samples[i]
		threads = append(threads, fmt.Sprint(s.Thread, s.State, s.NoState || !s.Wall, s.Wall))
		value += s.Value(b.Weight())
	}
	slices.Sort(threads)
	return fmt.Sprintln(b.Kind(), b.Event, b.Weight(), b.Meta.Mode, b.Meta.Interval, file.Types, file.Meta.Mode,
		b.Looks(), value, b.Resource, b.Resource.Labels(), slices.Compact(threads))
}

// TestShipAndAgentGiveTheSameNames: of the same samples, goprof ship sends to a server under the same service, types
// and labels as an agent, so that both are in one series.
func TestShipAndAgentGiveTheSameNames(t *testing.T) {
	parts := partsOfRecording()
	var file bytes.Buffer
	w := jfr.NewWriter(&file, jfr.Options{})
	var live []string
	for i := range parts {
		p := &parts[i]
		b := newBatches(false, newSpan())
		b.belongTo((&resource.Process{Service: "shop.jar", PID: 4711, Version: "25.0.3+9", Host: "host-7"}).Attributes())
		b.Begin(profile.Instant{}, p.meta)
		if i == 0 {
			w.SetMeta(p.meta)
		} else {
			w.AddPart(p.meta)
		}
		for _, s := range p.samples {
			b.Sample(s)
			if err := w.Sample(s); err != nil {
				t.Fatal(err)
			}
		}
		live = append(live, sent(t, b.cut(time.Unix(0, shipped.Start).Add(time.Second), p.meta.Interval, 0, false)))
	}
	if err := w.Close(profile.Instant{Wall: shipped.Start + 1e9, Ticks: 1e9}); err != nil {
		t.Fatal(err)
	}
	src, err := recording.Open(recording.Stdin, recording.Options{Stdin: &file, All: true})
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	var shipped []string
	m := src.Info().Meta
	_, err = replay.Each(src, replay.Options{Whose: replay.Whose(&m, ""), Every: time.Hour},
		func(b *batch.Batch) { shipped = append(shipped, sent(t, b)) })
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(live, shipped); d != "" {
		t.Errorf("- agent, + ship:\n%s", d)
	}
}
