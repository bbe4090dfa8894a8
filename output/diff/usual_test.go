package diff

import (
	"fmt"
	"strings"
	"testing"

	"goprof/output"
)

// shares returns a recording of 9,000 samples, a, b and c of them in the methods of these names.
func shares(t *testing.T, a, b, c int) *output.Tree {
	t.Helper()
	text := fmt.Sprintf("main;Demo.a %d\nmain;Demo.b %d\nmain;Demo.c %d\n", a, b, c)
	tree, err := output.ParseCollapsed(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

// TestLikely: with one recording per side, a change beyond the usual difference between two starts comes first, and is
// called likely. A smaller change is not, however many samples there are. Neither is proven.
func TestLikely(t *testing.T) {
	for name, c := range map[string]struct {
		after  [3]int
		likely string // the method, or empty
	}{
		"30 to 41.7 %":          {[3]int{4397, 3753, 850}, "Demo.b"},
		"30 to 36 %":            {[3]int{4860, 3240, 900}, ""},
		"10 to 20 %":            {[3]int{4950, 2250, 1800}, "Demo.c"},
		"nothing but chance":    {[3]int{5430, 2680, 890}, ""},
		"more, but all of them": {[3]int{5400, 2700, 900}, ""},
	} {
		both := New()
		for side, tree := range []*output.Tree{shares(t, 5400, 2700, 900), shares(t, c.after[0], c.after[1], c.after[2])} {
			if err := both.AddTree(Side(side), tree, 0); err != nil {
				t.Fatal(err)
			}
		}
		r, err := both.Compare(Options{By: "method"})
		if err != nil {
			t.Fatal(err)
		}
		told := strings.HasPrefix(r.Verdict(), "Likely: "+c.likely+" ")
		if r.Significant > 0 || told != (c.likely != "") || (r.Likely > 0) != told {
			t.Errorf("%s: %d likely: %s", name, r.Likely, r.Verdict())
		}
		if len(r.Changes) > 0 && told && (r.Changes[0].Name != c.likely || !r.Changes[0].Likely) {
			t.Errorf("%s: the first is %+v", name, r.Changes[0])
		}
	}
}

// TestProofNeedsNoUsual: with three recordings per side, the difference between starts is measured, and no change is
// called likely.
func TestProofNeedsNoUsual(t *testing.T) {
	both := New()
	for i := range 6 {
		a, b := 5400+i, 2700-i
		if i >= 3 {
			a, b = 4400+i, 3700-i
		}
		if err := both.AddTree(Side(i/3), shares(t, a, b, 900), 0); err != nil {
			t.Fatal(err)
		}
	}
	r, err := both.Compare(Options{By: "method"})
	if err != nil {
		t.Fatal(err)
	}
	if r.Likely > 0 || r.Significant == 0 || r.Changes[0].Usual != 0 {
		t.Errorf("%d likely, %d significant: %+v", r.Likely, r.Significant, r.Changes[0])
	}
}
