//go:build linux

package jvmtest

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Patterns of the names that text contains: files of this repository, tests, targets of make, and places in pages.
var (
	aFile    = regexp.MustCompile(`(?:^|[^\w/.*-])([\w./-]*\w\.(?:go|sh|md))\b`)
	aTest    = regexp.MustCompile(`\b(?:Test|Fuzz|Benchmark)[A-Z]\w*`)
	aTarget  = regexp.MustCompile("(?:^|`|; )make ([a-z][a-z0-9-]*)")
	aLink    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	aHeading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	aTestOf  = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark)[A-Z]\w*)\(`)
	aFlag    = regexp.MustCompile("(?:^|[ `(,])--([a-z][a-z0-9-]+)")
	flagOf   = regexp.MustCompile(`"([a-z][a-z0-9-]+)"`)
	targetOf = regexp.MustCompile(`(?m)^([a-z][a-z0-9-]*):`)
	// Behind these, the name of a test stands for all names that begin with it.
	choosesTests = regexp.MustCompile(`-(?:run|bench)\b|RUN=|ORACLE=`)
	notOfAnchors = regexp.MustCompile(`[^\w\- ]`)
)

// foreign are files of other projects that this repository's text cites.
var foreign = map[string]bool{
	"runtime/proc.go":         true, // Go
	"encoding.go":             true, // Go's internal/fuzz
	"doc/lz4_Frame_format.md": true,
	"doc/lz4_Block_format.md": true,
	"image-layout.md":         true, // OCI
}

// foreignFlags are flags of docker, kubectl, setpriv, ulimit and others, in commands on this repository's pages.
var foreignFlags = map[string]bool{
	"all": true, "bounding-set": true, "cap-add": true, "cpu-rt-runtime": true,
	"cpus": true, "help": true, "ignore-missing": true, "image": true, "offline": true, "privileged": true,
	"profile": true, "read-only": true, "rm": true, "security-opt": true, "target": true, "ulimit": true, "value": true,
}

// tree is everything that text can name.
type tree struct {
	text    map[string]string // the text of pages, Go files and the Makefile
	ends    map[string]bool   // each file and folder, and each end of its path
	tests   map[string]bool
	targets map[string]bool
	// strings in the code of the command and of the agent's configuration: each flag is one of them
	flags map[string]bool
}

// TestReferences: what pages name exists: files, tests, targets of make, flags, links. What comments name exists:
// files and tests.
func TestReferences(t *testing.T) {
	tr := readTree(t)
	for file, text := range tr.text {
		isPage := strings.HasSuffix(file, ".md")
		number := 0
		for line := range strings.Lines(text) {
			number++
			if !isPage {
				_, comment, found := strings.Cut(line, "//")
				if !found {
					continue
				}
				line = comment
			}
			for _, missing := range tr.missing(file, line, isPage) {
				t.Errorf("%s:%d names %s, which is not there", file, number, missing)
			}
		}
	}
}

// missing are the things that a line names and the tree lacks.
func (tr *tree) missing(file, line string, isPage bool) (names []string) {
	for _, m := range aFile.FindAllStringSubmatch(line, -1) {
		if name := path.Clean(m[1]); !tr.ends[strings.TrimLeft(name, "./")] && !foreign[name] {
			names = append(names, name)
		}
	}
	for _, name := range aTest.FindAllString(line, -1) {
		if !tr.tests[name] && !(choosesTests.MatchString(line) && tr.begins(name)) {
			names = append(names, name)
		}
	}
	if !isPage {
		return names
	}
	for _, m := range aTarget.FindAllStringSubmatch(line, -1) {
		if !tr.targets[m[1]] {
			names = append(names, "make "+m[1])
		}
	}
	for _, m := range aFlag.FindAllStringSubmatch(line, -1) {
		if !tr.flags[m[1]] && !foreignFlags[m[1]] {
			names = append(names, "--"+m[1])
		}
	}
	for _, m := range aLink.FindAllStringSubmatch(line, -1) {
		if !strings.Contains(m[1], "://") && !tr.leads(file, m[1]) {
			names = append(names, m[1])
		}
	}
	return names
}

// begins tells whether some test's name begins with this.
func (tr *tree) begins(name string) bool {
	for test := range tr.tests {
		if strings.HasPrefix(test, name) {
			return true
		}
	}
	return false
}

// leads tells whether a link on a page leads to something.
func (tr *tree) leads(file, link string) bool {
	to, anchor, _ := strings.Cut(link, "#")
	page := file
	if to != "" {
		page = path.Join(path.Dir(file), to)
	}
	if !tr.ends[page] {
		return false
	}
	if anchor == "" || strings.Contains(tr.text[page], `id="`+anchor+`"`) {
		return true
	}
	for _, m := range aHeading.FindAllStringSubmatch(tr.text[page], -1) {
		name := notOfAnchors.ReplaceAllString(strings.ToLower(m[1]), "")
		if strings.ReplaceAll(name, " ", "-") == anchor {
			return true
		}
	}
	return false
}

func readTree(t *testing.T) *tree {
	t.Helper()
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	tr := &tree{text: map[string]string{}, ends: map[string]bool{}, tests: map[string]bool{}, targets: map[string]bool{},
		flags: map[string]bool{}}
	err = filepath.WalkDir(root, func(full string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(root, full)
		name = filepath.ToSlash(name)
		if entry.IsDir() && (name == ".git" || name == "build") {
			return filepath.SkipDir
		}
		for end := name; end != ""; _, end, _ = strings.Cut(end, "/") {
			tr.ends[end] = true
		}
		ext := path.Ext(name)
		if !entry.Type().IsRegular() || ext != ".go" && ext != ".md" && name != "Makefile" {
			return nil
		}
		text, err := os.ReadFile(full)
		if name != "testdata/jvmtest/references_test.go" && name != "Makefile" {
			tr.text[name] = string(text)
		}
		tr.learn(name, string(text))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// learn takes the tests of a Go file, the flags of the command, and the targets of the Makefile.
func (tr *tree) learn(file, text string) {
	take := func(names *regexp.Regexp, into map[string]bool) {
		for _, m := range names.FindAllStringSubmatch(text, -1) {
			into[m[1]] = true
		}
	}
	switch {
	case file == "Makefile":
		take(targetOf, tr.targets)
	case path.Dir(file) == "cmd/goprof" || path.Dir(file) == "agent/config":
		take(flagOf, tr.flags)
		fallthrough
	default:
		take(aTestOf, tr.tests)
	}
}

// TestMissing: a name without a thing is reported, whatever kind of thing it names.
func TestMissing(t *testing.T) {
	tr := &tree{
		text:    map[string]string{"pages/a.md": "# One way\n"},
		ends:    map[string]bool{"pages/a.md": true, "a.md": true, "unwind/walker.go": true, "walker.go": true},
		tests:   map[string]bool{"TestWalk": true},
		targets: map[string]bool{"quick": true},
		flags:   map[string]bool{"pid": true},
	}
	for line, want := range map[string]string{
		"see `walker.go` and unwind/walker.go": "",
		"see `layout.go:215`":                  "layout.go",
		"TestWalk proves it":                   "",
		"TestWal proves it":                    "TestWal",
		"go test ./unwind -run 'TestWal'":      "",
		"go test ./unwind -run 'TestRun'":      "TestRun",
		"`make quick` and `make slow`":         "make slow",
		"[here](a.md#one-way), [there](#here)": "#here",
		"[a](a.md) and [b](../b.md)":           "../b.md ../b.md",
		"`goprof dump --pid 1 --slowly`":       "--slowly",
	} {
		if got := strings.Join(tr.missing("pages/a.md", line, true), " "); got != want {
			t.Errorf("%q: %q is missing, want %q", line, got, want)
		}
	}
}
