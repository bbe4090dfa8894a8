//go:build linux

package session

import (
	"testing"

	"goprof/profile"
	"goprof/sampler/look"
)

// TestChain: a chain continues as long as the wakers waited during the first thread's wait. It ends at its bound, and
// where a wait is not kept.
func TestChain(t *testing.T) {
	named := func(name string) []profile.Frame { return []profile.Frame{{Func: &profile.Func{Name: name}}} }
	c := chain{most: 3, of: map[*look.Tally]*hop{}}
	waits := map[string]*hop{}
	for _, w := range []struct {
		by, before string // the waker's last wait
		began, end int64
		want       string // leaf first
	}{
		{"timer", "", 0, 100, "timer"},
		{"a", "timer", 0, 101, "timer a"},
		{"b", "a", 50, 102, "timer a b"},
		{"c", "b", 60, 103, "a b c"}, // at most three
		{"d", "b", 99, 129, "b d"},   // b's wait ended after this one had begun; b's wait before was over by then
		{"e", "b", 102, 200, "e"},    // b ran all the time
		{"f", "b", 92, 202, "f"},     // less than a tenth of the wait
		{"g", "b", 93, 183, "b g"},   // a tenth of the wait
		{"h", "nothing of which is known", 0, 1, "h"},
	} {
		h := &hop{above: named(w.by), began: w.began, end: w.end, before: waits[w.before]}
		tally := new(look.Tally)
		got := ""
		for _, f := range c.add(tally, h) {
			got += f.Func.Name + " "
		}
		if got != w.want+" " {
			t.Errorf("%s: %q, not %q", w.by, got, w.want)
		}
		waits[w.by] = c.of[tally]
	}
	for range mostHops {
		c.add(new(look.Tally), &hop{above: named("x"), end: 1})
	}
	if h := waits["b"]; len(c.of) != mostHops || len(c.order) != mostHops || c.frames != mostHops || h.above != nil {
		t.Errorf("%d, %d, %d, %+v", len(c.of), len(c.order), c.frames, h)
	}
	c = chain{of: map[*look.Tally]*hop{}}
	if c.add(new(look.Tally), &hop{above: named("x")}); len(c.of) != 0 {
		t.Error("a wait is kept, and no chains are wanted")
	}
}
