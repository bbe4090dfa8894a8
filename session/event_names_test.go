//go:build linux

package session

import (
	"bytes"
	"cmp"
	"errors"
	"testing"

	"goprof/output/jfr"
	"goprof/profile"
	"goprof/profile/redact"
)

// TestEventNamesStay: a redacted recording keeps the names of events. So a JFR type that is named after an event keeps
// its name.
func TestEventNamesStay(t *testing.T) {
	by := redact.New(redact.Default(), []byte("the key of this test"))
	for i := range eventPresets {
		p := &eventPresets[i]
		if got := by.Text(p.Name); got != p.Name {
			t.Errorf("%s becomes %s", p.Name, got)
		}
	}
	for _, name := range []string{"cpu", "wall", "off-cpu", "lock", "ttsp"} {
		if got := by.Text(name); got != name {
			t.Errorf("%s becomes %s", name, got)
		}
	}
}

// TestEventsStay: a redacted JFR file still has the samples of each event.
func TestEventsStay(t *testing.T) {
	kinds := []profile.EventKind{{Name: "wall"}, {Name: "off-cpu"}, {Name: "lock"}, {Name: "ttsp"}}
	for i := range eventPresets {
		p := &eventPresets[i]
		kinds = append(kinds, profile.EventKind{Name: p.Name, Unit: p.Unit})
	}
	stack := &profile.Stack{Frames: []profile.Frame{{Func: &profile.Func{Name: "shop.Cart.pay"}, Kind: profile.C2}}}
	for i := range kinds {
		var file, out bytes.Buffer
		w := jfr.NewWriter(&file, jfr.Options{})
		at := profile.Instant{Wall: 1e18, Ticks: 1e9}
		s := profile.Sample{At: at, Thread: profile.Thread{TID: 7, Name: "main"}, Stack: stack, Count: 1, Bytes: 64,
			Event: &kinds[i]}
		if s.Event.Name == profile.EventIO {
			s.IO = &profile.IOCall{Target: profile.IOTarget{Kind: profile.IOFile, Name: "/shop/carts"}}
		}
		if err := cmp.Or(w.Sample(&s), w.Close(at)); err != nil {
			t.Fatal(err)
		}
		by := redact.New(redact.Default(), []byte("the key of this test"))
		spill := func() (jfr.Spill, error) { return nil, errors.New("no spill") }
		if _, err := jfr.Redact(&out, bytes.NewReader(file.Bytes()), int64(file.Len()), by, spill); err != nil {
			t.Fatal(err)
		}
		r := jfr.NewReader(bytes.NewReader(out.Bytes()), int64(out.Len()), nil)
		if e, err := r.Next(); err != nil || e.Stack == nil {
			t.Errorf("%s: its sample is gone (%v)", kinds[i].Name, err)
		}
	}
}
