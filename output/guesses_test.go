package output

import (
	"strings"
	"testing"

	"goprof/profile"
)

// TestGuessedLeaves: in output files, many guesses of a compiled method count for that method, and a report says so. In
// the account they are a doubt, and not also a note.
func TestGuessedLeaves(t *testing.T) {
	crunch, mix := &profile.Func{Name: "pek.Pek.crunch"}, &profile.Func{Name: "pek.Pek.mix"}
	p := profile.New()
	for sure, n := range map[profile.Certainty]int64{profile.Guessed: 600, profile.Certain: 400} {
		p.Add("", &profile.Stack{Frames: []profile.Frame{{Func: mix, Kind: profile.Inlined, Sure: sure},
			{Func: crunch, Kind: profile.C2}}}, n)
	}
	var collapsed, table, account strings.Builder
	if err := Collapsed(&collapsed, p); err != nil {
		t.Fatal(err)
	}
	if want := "pek.Pek.crunch_[j] 600\npek.Pek.crunch_[j];pek.Pek.mix_[i] 400\n"; collapsed.String() != want {
		t.Errorf("%s, not %s", collapsed.String(), want)
	}
	tree := TreeOf(p).Shaped(Shape{HideInternal: true})
	r, err := NewReport(tree, "method")
	if err == nil {
		err = r.Text(&table)
	}
	if err != nil || !strings.Contains(table.String(), "\nIn 60.0% of it") || r.Rows[0].Name != crunch.Name ||
		r.Rows[0].Self != 600 || r.Unnamed != 600 {
		t.Errorf("%s%v", table.String(), err)
	}
	s := p.Summary()
	s.SetQuality()
	if err := SummaryText(&account, &s); err != nil {
		t.Fatal(err)
	}
	if text := account.String(); !strings.Contains(text, "POOR") || strings.Count(text, "guess") != 1 {
		t.Errorf("%s", text)
	}
}
