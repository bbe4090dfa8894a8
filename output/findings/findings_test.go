package findings

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"goprof/output"
	"goprof/output/flame"
	"goprof/profile"
)

func found() *profile.Triage {
	return &profile.Triage{
		Findings: []profile.Finding{
			{ID: profile.Deadlocked, Severity: profile.Critical, Claim: "2 threads wait for each other.",
				Evidence: []string{`"a" waits`, `"b" waits`}, Next: "goprof locks --pid 7"},
			{ID: profile.CPUHot, Severity: profile.Warning, Claim: "CPU time is burnt.", Next: "goprof record --pid 7"}},
		Notes:   []string{"the process is stopped"},
		Unknown: []profile.Unknown{{ID: profile.FDLimit, Why: "no rights"}},
	}
}

const wantText = `1. deadlock (critical)
   2 threads wait for each other.
     "a" waits
     "b" waits
   next: goprof locks --pid 7

2. cpu-hot (warning)
   CPU time is burnt.
   next: goprof record --pid 7

Note
  the process is stopped

Not known
  fd-limit: no rights
`

func TestText(t *testing.T) {
	var b strings.Builder
	if err := Text(&b, found()); err != nil || b.String() != wantText {
		t.Errorf("%v\n%s", err, b.String())
	}
	b.Reset()
	const all = "Nothing is wrong that can be seen from outside.\n"
	if err := Text(&b, &profile.Triage{}); err != nil || b.String() != all {
		t.Errorf("%v\n%s", err, b.String())
	}
}

// TestNothingFound: the text says that nothing is wrong only if all rules were judged. Rules that lack the same facts
// share a line.
func TestNothingFound(t *testing.T) {
	var b strings.Builder
	err := Text(&b, &profile.Triage{Unknown: []profile.Unknown{{ID: profile.GCBusy, Why: "x"},
		{ID: profile.CPUHot, Why: "x"}, {ID: profile.FDLimit, Why: "y"}}})
	const want = `Nothing was found, but 3 things that could be wrong could not be judged: see "Not known".

Not known
  gc-busy, cpu-hot: x
  fd-limit: y
`
	if err != nil || b.String() != want {
		t.Errorf("%v\n%s", err, b.String())
	}
}

// TestJSON: JSON has the documented fields, and lists are never null.
func TestJSON(t *testing.T) {
	for _, of := range []*profile.Triage{found(), {}} {
		var b strings.Builder
		if err := JSON(&b, of); err != nil {
			t.Fatal(err)
		}
		var got map[string][]map[string]any
		var plain map[string]any
		if json.Unmarshal([]byte(b.String()), &plain) != nil || strings.Contains(b.String(), "null") {
			t.Fatal(b.String())
		}
		delete(plain, "notes")
		again, _ := json.Marshal(plain)
		if err := json.Unmarshal(again, &got); err != nil {
			t.Fatal(err)
		}
		for i, f := range got["findings"] {
			keys := []string{}
			for k := range f {
				keys = append(keys, k)
			}
			slices.Sort(keys)
			if !slices.Equal(keys, []string{"claim", "evidence", "id", "next", "severity"}) ||
				f["id"] != string(of.Findings[i].ID) {
				t.Error(keys, f["id"])
			}
		}
	}
}

// hostile is a name that a malicious target may give to its threads and classes.
const hostile = "<script>alert(1)</script>\"'&;\x1b[2J\u202e\n@DATA@ </section>"

// TestHostile: in every output, a name of the target is only text.
func TestHostile(t *testing.T) {
	f := &profile.Triage{Findings: []profile.Finding{{ID: profile.Deadlocked, Severity: profile.Critical, Claim: hostile,
		Evidence: []string{hostile}, Next: hostile}}, Notes: []string{hostile}, Unknown: []profile.Unknown{{Why: hostile}}}
	var text, page, js strings.Builder
	p := profile.New()
	p.Add("["+hostile+" tid=1]", &profile.Stack{Frames: []profile.Frame{{Func: &profile.Func{Name: hostile}}}}, 3)
	drawn := Page(&page, f, output.TreeOf(p), flame.Options{Title: hostile})
	for _, err := range []error{Text(&text, f), JSON(&js, f), drawn} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for what, s := range map[string]string{"text": text.String(), "JSON": js.String(), "page": section(f)} {
		if strings.ContainsAny(s, "\x1b\u202e") {
			t.Errorf("%s moves the cursor or turns text around", what)
		}
	}
	if strings.Count(page.String(), "<script") != 2 || strings.Count(page.String(), "</section>") != 1 {
		t.Error("a name of the target has become part of the page")
	}
	if got := strings.Count(text.String(), "\n"); got != 10 {
		t.Errorf("%d lines:\n%s", got, text.String())
	}
}
