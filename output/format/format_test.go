package format

import (
	"strings"
	"testing"
)

func TestOf(t *testing.T) {
	for _, c := range []struct {
		file, named string
		want        Format
	}{
		{"x.collapsed", "", Collapsed}, {"x.txt", "", Collapsed}, {"-", "", Collapsed}, {"/dev/fd/3", "", Collapsed},
		{"a.b/out", "", Collapsed}, {"X.HTML", "", HTML}, {"x.svg", "", SVG}, {"dir/x.jfr", "", JFR},
		{"x.pb.gz", "", PProf}, {"x.pprof", "", PProf}, {"x.json", "", JSON}, {"x.speedscope.json", "", Speedscope},
		{"x.firefox.json.gz", "", Firefox}, {".jfr", "", JFR},
		{"x.html", "jfr", JFR}, {"-", "Firefox", Firefox}, {"x.zip", "pb.gz", PProf}, {"-", ".speedscope.json", Speedscope},
	} {
		if got, err := Of(c.file, c.named); err != nil || got != c.want {
			t.Errorf("%q -f %q is %v, %v", c.file, c.named, got, err)
		}
	}
	for _, c := range [][2]string{
		{"x.gz", ""}, {"x.json.gz", ""}, {"x.collapsed.zip", ""}, {"x.jfr", "zip"}, {"out.2026-11-22", ""},
	} {
		_, err := Of(c[0], c[1])
		if err == nil || !strings.Contains(err.Error(), "jfr") || !strings.Contains(err.Error(), "speedscope") {
			t.Errorf("%q -f %q: %v", c[0], c[1], err)
		}
	}
}

func TestTrim(t *testing.T) {
	for name, want := range map[string]string{"a/x.firefox.json.gz": "a/x", "x.PB.GZ": "x", "x.data": "x", "x": "x"} {
		if got := Trim(name); got != want {
			t.Errorf("%q is %q", name, got)
		}
	}
}

// TestNames: each format can be chosen by its name and by its extension.
func TestNames(t *testing.T) {
	for _, f := range All() {
		named, err := Named(f.String())
		of, err2 := Of("x"+f.Extension(), "")
		if err != nil || err2 != nil || named != f || of != f || f.About() == "" {
			t.Errorf("%v is %v, %v; %v, %v", f, named, of, err, err2)
		}
	}
	if f := Format(99); f.String() != "unknown" || f.Extension() != "" || f.About() != "" {
		t.Error("a format that is none")
	}
}
