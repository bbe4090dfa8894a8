//go:build linux

package session

import (
	"testing"

	"goprof/profile"
	"goprof/sampler/look"
)

// TestChain: a chain goes on as long as the wakers waited while the first thread did, to its bound, and no further than
// what is kept.
func TestChain(t *testing.T) {
	named := func(name string) []profile.Frame { return []profile.Frame{{Func: &profile.Func{Name: name}}} }
	c := chain{most: 3, of: map[*look.Tally]*hop{}}
	waits := map[string]*hop{}
	for _, w := range []struct {
		by, before string // before is the waker's last wait
		began, end int64
		want       string // leaf first
	}{
		{"timer", "", 0, 100, "timer"},
		{"a", "timer", 0, 101, "timer a"},
		{"b", "a", 50, 102, "timer a b"},
		{"c", "b", 60, 103, "a b c"}, // three at most
		{"d", "b", 99, 129, "b d"},   // b's wait ended when this one had begun; the one before was over
		{"e", "b", 102, 200, "e"},    // b ran all the time
		{"f", "b", 92, 202, "f"},     // less than a tenth
		{"g", "b", 93, 183, "b g"},   // a tenth
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
