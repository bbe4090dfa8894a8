//go:build linux

package recorder

import (
	"io"
	"testing"
	"time"

	"goprof/cmd/goprof/product"
	"goprof/cmd/goprof/terminal"
	"goprof/profile"
	"goprof/session"
)

func TestProgressLine(t *testing.T) {
	sum := func(samples, truncated, lost int64, passed time.Duration) profile.Summary {
		return profile.Summary{Samples: samples, Truncated: truncated, Lost: lost, Meta: profile.Meta{Duration: passed}}
	}
	for _, c := range []struct {
		of   time.Duration
		sums []profile.Summary
		want string
	}{
		{0, nil, "0s  0 samples"},
		{30 * time.Second, []profile.Summary{sum(1234, 0, 0, 12300*time.Millisecond)},
			"18s left of 30s  1234 samples"},
		{0, []profile.Summary{sum(100, 2, 0, time.Second), sum(50, 1, 4, 2*time.Second)},
			"2s  150 samples  3 truncated  4 lost"},
	} {
		if got := progressLine(c.of, c.sums); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// TestProgressOnce: stacks that are summed up right after progress has copied them count once.
func TestProgressOnce(t *testing.T) {
	stack := func(name string) *profile.Stack {
		return &profile.Stack{Frames: []profile.Frame{{Func: &profile.Func{Name: name}, Kind: profile.C2, BCI: -1}}}
	}
	earlier := profile.New()
	earlier.Add("", stack("shop.Cart.sell"), 1)
	for range 100 {
		r := &Recorder{part: part{visits: make(chan session.Visit), hottest: new(product.Hottest)}, out: &product.Outputs{},
			ended: make(chan struct{})}
		r.hottest.Add(earlier)
		now := profile.New()
		now.Add("", stack("shop.Cart.total"), 1)
		added := make(chan struct{})
		go func() {
			defer close(added)
			(<-r.visits)(now, &profile.Summary{Samples: 2})
			r.hottest.Add(now)
		}()
		p := progress{recorders: []*Recorder{r}}
		p.look()
		<-added
		if len(p.seen.Hottest) != 2 || p.seen.Hottest[0].Share != 0.5 {
			t.Fatalf("%+v", p.seen.Hottest)
		}
	}
}

// TestProgressSeen: a line has as much of what was seen as fits, and does not say how to end where there is no room.
func TestProgressSeen(t *testing.T) {
	sums := []profile.Summary{{Samples: 40, Meta: profile.Meta{Duration: 2 * time.Second}}}
	seen := &profile.Summary{Hottest: []profile.Part{{Name: "shop.Cart.total", Share: 0.6}, {Name: "shop.Cart.sell",
		Share: 0.2}}}
	waits := &profile.Summary{Hottest: seen.Hottest[:1], States: []profile.Part{{Name: "parked", Share: 0.9}}}
	for _, c := range []struct {
		columns int
		seen    *profile.Summary
		want    string
	}{
		{80, nil, "2s  40 samples"},
		{80, seen, "2s  40 samples  60 % Cart.total   20 % Cart.sell"},
		{40, seen, "2s  40 samples  60 % Cart.total"},
		{20, seen, "2s  40 samples"},
		{80, waits, "2s  40 samples  90 % parked:  60 % Cart.total"},
		{30, waits, "2s  40 samples  90 % parked"},
		{20, waits, "2s  40 samples"},
	} {
		p := progress{line: terminal.NewStatusLine(io.Discard), o: &Options{}, seen: c.seen}
		if got := p.text(sums, c.columns); got != c.want {
			t.Errorf("%d columns: %q, want %q", c.columns, got, c.want)
		}
	}
}
