package recording

import (
	"bytes"
	"testing"
	"time"

	"goprof/output/jfr"
	"goprof/profile"
)

// partsFile is a recording of several parts. Two of them have a time as weight. Each has an account of its own.
func partsFile(t testing.TB, names ...string) []byte {
	t.Helper()
	meta := map[string]profile.Meta{
		"ttsp":             {Mode: profile.ModeTTSP, Engine: "ptrace", Interval: time.Millisecond, Weight: profile.WallTime},
		"cpu":              {Mode: profile.ModeCPU, Engine: "ptrace", Interval: 10 * time.Millisecond},
		"lock":             {Mode: profile.ModeOffCPU, Engine: "perf", Interval: time.Millisecond, Weight: profile.WallTime},
		"alloc,gc-request": {Mode: "alloc,gc-request", Engine: "perf"},
	}
	samples := map[string]profile.Sample{
		"ttsp": {Wall: true, Span: 3 * time.Millisecond, State: profile.Runnable,
			Event: &profile.EventKind{Name: "ttsp", Unit: profile.WallTime}},
		"cpu": {CPU: 10 * time.Millisecond},
		"lock": {Wall: true, Span: time.Second, State: profile.Parked, Count: 7,
			Event: &profile.EventKind{Name: "lock", Unit: profile.WallTime}},
		"alloc,gc-request": {Bytes: 4096, Event: &profile.EventKind{Name: "alloc", Unit: profile.Bytes}},
	}
	var b bytes.Buffer
	var account profile.Summary
	w := jfr.NewWriter(&b, jfr.Options{ChunkLength: time.Second})
	for i, name := range names {
		m := meta[name]
		m.Part, m.PID, m.Version = name, 4711, "1"
		sum := profile.Summary{Meta: m, Attempted: int64(10 + i), Lost: int64(i), Whole: 10,
			LostBy: map[string]int64{profile.Stale.String(): int64(i)}}
		if i == 0 {
			w.SetMeta(m)
			account = sum
		} else {
			w.AddPart(m)
			account.Parts = append(account.Parts, sum)
		}
	}
	leaf := cpuSamples()[0].Stack
	for i := range 3 { // number of chunks
		for _, name := range names {
			s := samples[name]
			s.At, s.Stack = moment(time.Duration(i)*2*time.Second), leaf
			if err := w.Sample(&s); err != nil {
				t.Fatal(err)
			}
		}
	}
	end := moment(6 * time.Second)
	if err := w.Account(end, &account); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(end); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestParts: each part of a recording can be read by its name, with its own account. Without a name, the first part is
// read.
func TestParts(t *testing.T) {
	names := []string{"ttsp", "cpu", "lock", "alloc,gc-request"}
	for first := range names {
		order := append(append([]string{}, names[first:]...), names[:first]...)
		data := partsFile(t, order...)
		for _, c := range []struct {
			event, part, mode string
			weight            profile.Weight
			sum               int64
		}{
			{"ttsp", "ttsp", profile.ModeTTSP, profile.WallTime, int64(9 * time.Millisecond)},
			{"lock", "lock", profile.ModeOffCPU, profile.WallTime, int64(3 * time.Second)},
			{"lock", "lock", profile.ModeOffCPU, profile.Samples, 21},
			{"cpu", "cpu", profile.ModeCPU, profile.Samples, 3},
			{"alloc", "alloc,gc-request", "alloc", profile.Bytes, 3 * 4096},
		} {
			for _, event := range []string{c.event, ""} {
				if event == "" && c.part != order[0] {
					continue // without a name, another part is read
				}
				f := reading(t, data, Options{Event: event, Weight: &c.weight})
				got := int64(0)
				if err := f.Each(func(s *profile.Sample) error { got += Weigh(s, c.weight); return nil }); err != nil {
					t.Fatal(err)
				}
				i := f.Info()
				if got != c.sum || i.Meta.Mode != c.mode || i.Meta.Part != "" {
					t.Errorf("%v: %q: %d in mode %s, part %q", order, event, got, i.Meta.Mode, i.Meta.Part)
				}
				at := int64(0)
				for order[at] != c.part {
					at++
				}
				if i.Summary == nil || i.Summary.Lost != at || i.Summary.LostBy[profile.Stale.String()] != at {
					t.Errorf("%v: %q has the account of another: %+v", order, event, i.Summary)
				}
			}
		}
	}
}
