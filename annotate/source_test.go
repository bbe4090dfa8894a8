//go:build unix

package annotate

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestWhichSource: text is that of the class's own file, or there is none.
func TestWhichSource(t *testing.T) {
	const none, several = "there is no", "several files fit equally"
	for name, c := range map[string]struct {
		method string
		files  map[string]string // their first line
		want   string            // the file, or why there is none
	}{
		"by its package": {"b.Two.f", map[string]string{"a/Two.java": "package a;", "b/Two.java": "package b;"},
			"b/Two.java"},
		"no package": {"Two.f", map[string]string{"a/Two.java": "package a;", "x/Two.java": "class Two {"},
			"x/Two.java"},
		"all of other packages": {"Two.f", map[string]string{"a/Two.java": "package a;", "b/Two.java": "package b; // b"},
			none},
		"no package, at the top": {"Two.f", map[string]string{"Two.java": "class Two {", "a/Two.java": "class Two {"},
			"Two.java"},
		"the top is another's": {"Two.f", map[string]string{"Two.java": "\ufeffpackage a;", "x/Two.java": "class Two {"},
			"x/Two.java"},
		"a longer package": {"b.Two.f", map[string]string{"lib/a/b/Two.java": "package a.b;\r",
			"src/b/Two.java": "package b;"},
			"src/b/Two.java"},
		"two modules": {"b.Two.f", map[string]string{"m1/b/Two.java": "package b;", "m2/b/Two.java": "package b;"},
			several},
		"a pipe": {"b.Two.f", map[string]string{"b/Two.java": "|", "src/b/Two.java": "|"},
			none},
		"beside a pipe": {"b.Two.f", map[string]string{"b/Two.java": "|", "src/b/Two.java": "package b;"},
			"src/b/Two.java"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for file, first := range c.files {
				file = filepath.Join(dir, file)
				if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
					t.Fatal(err)
				}
				var err error
				if first == "|" {
					err = syscall.Mkfifo(file, 0o600)
				} else {
					err = os.WriteFile(file, []byte(first+"\ntext of "+file), 0o600)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			p := &Page{Method: c.method, File: "Two.java", Methods: []Method{{Lines: []Line{{Line: 2}}}}}
			err := p.ReadSource(dir)
			text, notes := p.Methods[0].Lines[0].Source, strings.Join(p.Notes, "\n")
			switch want := filepath.Join(dir, c.want); c.want {
			case none:
				if err == nil || !strings.Contains(err.Error(), none) || text != "" {
					t.Errorf("%q: %q, %v", text, notes, err)
				}
			case several:
				if err != nil || !strings.Contains(notes, several+": m1/b/Two.java, m2/b/Two.java") || text != "" {
					t.Errorf("%q: %q, %v", text, notes, err)
				}
			default:
				if err != nil || text != "text of "+want || notes != "source: "+want {
					t.Errorf("%q: %q, %v", text, notes, err)
				}
			}
		})
	}
}
