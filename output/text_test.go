package output

import (
	"bytes"
	"encoding/json"
	"testing"
)

// hostile are possible names of a thread, each of which would affect a terminal.
var hostile = []string{"\x1b[2J", "\u009b2J", "\x7f", "\u202egnp.exe", "\u2066x", "a\nb", "\r", "\u2028", "\u0085",
	"<b>&\"'\\u009b", "\xff"}

func TestPrintable(t *testing.T) {
	for _, name := range hostile {
		if i := bytes.IndexFunc([]byte(Printable(name)), Unsafe); i >= 0 {
			t.Errorf("%q stays %q", name, Printable(name))
		}
	}
	for _, name := range []string{"", "main", "Größe 木 (x); y"} {
		if got := Printable(name); got != name {
			t.Errorf("%q became %q", name, got)
		}
	}
}

// TestJSONIsSafeAndWhole: dump --json on a terminal, and through jq.
func TestJSONIsSafeAndWhole(t *testing.T) {
	var b bytes.Buffer
	if err := WriteJSON(&b, hostile); err != nil {
		t.Fatal(err)
	}
	for _, line := range bytes.Split(b.Bytes(), []byte("\n")) {
		if bytes.IndexFunc(line, Unsafe) >= 0 {
			t.Errorf("a terminal would obey %q", line)
		}
	}
	var back []string
	if err := json.Unmarshal(b.Bytes(), &back); err != nil {
		t.Fatal(err)
	}
	for i, want := range hostile {
		if want == "\xff" {
			want = "\uFFFD"
		}
		if back[i] != want {
			t.Errorf("%q became %q", want, back[i])
		}
	}
}
