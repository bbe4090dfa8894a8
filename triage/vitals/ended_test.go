package vitals

import (
	"testing"
	"time"

	"goprof/process/maybe"
)

// TestEnded: collections between two readings are told one by one; those before the last share the rest of the time.
func TestEnded(t *testing.T) {
	const ms = time.Millisecond
	at := func(name string, count uint64, spent, begun, ended time.Duration) GC {
		return GC{Collectors: []Collector{{Name: name, Count: count, Time: spent, Begun: maybe.Known(begun),
			Ended: maybe.Known(ended), UnderWay: begun > ended}}}
	}
	for _, c := range []struct {
		name string
		a, b GC
		want []time.Duration
		end  maybe.Value[time.Duration] // of the last
	}{
		{"none", at("x", 5, 50*ms, 90*ms, 99*ms), at("x", 5, 50*ms, 90*ms, 99*ms), nil, maybe.Value[time.Duration]{}},
		{"one", at("x", 5, 50*ms, 90*ms, 99*ms), at("x", 6, 62*ms, 120*ms, 132*ms), []time.Duration{12 * ms},
			maybe.Known(132 * ms)},
		{"three", at("x", 5, 50*ms, 90*ms, 99*ms), at("x", 8, 80*ms, 190*ms, 200*ms),
			[]time.Duration{10 * ms, 10 * ms, 10 * ms}, maybe.Known(200 * ms)},
		{"three, the last one long", at("x", 5, 50*ms, 90*ms, 99*ms), at("x", 8, 80*ms, 180*ms, 200*ms),
			[]time.Duration{5 * ms, 5 * ms, 20 * ms}, maybe.Known(200 * ms)},
		{"one is under way", at("x", 5, 50*ms, 90*ms, 99*ms), at("x", 6, 50*ms, 120*ms, 99*ms), nil,
			maybe.Value[time.Duration]{}},
		{"it has ended", at("x", 6, 50*ms, 120*ms, 99*ms), at("x", 6, 60*ms, 120*ms, 130*ms), []time.Duration{10 * ms},
			maybe.Known(130 * ms)},
		{"one ended, the next is under way", at("x", 5, 50*ms, 90*ms, 99*ms), at("x", 7, 57*ms, 140*ms, 130*ms),
			[]time.Duration{7 * ms}, maybe.Value[time.Duration]{}},
		{"another collector", at("x", 5, 50*ms, 90*ms, 99*ms), at("y", 9, 80*ms, 190*ms, 200*ms), nil,
			maybe.Value[time.Duration]{}},
		{"counts that go back", at("x", 5, 50*ms, 90*ms, 99*ms), at("x", 2, 80*ms, 190*ms, 200*ms), nil,
			maybe.Value[time.Duration]{}},
	} {
		got := Ended(&c.a, &c.b)
		if len(got) != len(c.want) {
			t.Errorf("%s: %d collections, want %d", c.name, len(got), len(c.want))
			continue
		}
		for i := range got {
			if got[i].Length != c.want[i] {
				t.Errorf("%s: collection %d took %v, want %v", c.name, i, got[i].Length, c.want[i])
			}
		}
		if n := len(got); n > 0 && got[n-1].Ended != c.end {
			t.Errorf("%s: it ended at %v, want %v", c.name, got[n-1].Ended, c.end)
		}
	}
	hostile := at("x", 1<<63, 1, 0, 0)
	if got := Ended(&GC{Collectors: []Collector{{Name: "x"}}}, &hostile); len(got) > maxEnded {
		t.Errorf("%d collections", len(got))
	}
}
