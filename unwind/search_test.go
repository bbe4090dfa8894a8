package unwind

import "testing"

// TestNestedSearches: a search that is asked for by another one leaves the other's places alone. Too many are refused.
func TestNestedSearches(t *testing.T) {
	w := &Walker{}
	outer := w.beginWays()
	outer.add(70, 1)
	inner := w.beginWays()
	inner.add(3, 2)
	inner.end()
	if again := w.beginWays(); len(again.queue) != 0 || again.seen[0] != 0 {
		t.Errorf("an ended search is left: %+v", again)
	}
	if len(outer.queue) != 1 || outer.queue[0] != (reached{70, 1}) {
		t.Errorf("the outer search has %+v", outer.queue)
	}
	for range mostNested - 2 {
		if w.beginWays() == nil {
			t.Fatal("too few may be under way")
		}
	}
	if w.beginWays() != nil {
		t.Error("too many are under way")
	}
}
