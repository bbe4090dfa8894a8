package leaf

import "testing"

// TestNestedSearches: a search within another one does not change the other's places. Too many nested ones are refused.
func TestNestedSearches(t *testing.T) {
	f := &Finder{}
	outer := f.beginWays()
	outer.add(70, 1)
	inner := f.beginWays()
	inner.add(3, 2)
	inner.end()
	if again := f.beginWays(); len(again.queue) != 0 || again.seen[0] != 0 {
		t.Errorf("an ended search is left: %+v", again)
	}
	if len(outer.queue) != 1 || outer.queue[0] != (reached{70, 1}) {
		t.Errorf("the outer search has %+v", outer.queue)
	}
	for range mostNested - 2 {
		if f.beginWays() == nil {
			t.Fatal("too few may be under way")
		}
	}
	if f.beginWays() != nil {
		t.Error("too many are under way")
	}
}
